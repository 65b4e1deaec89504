import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/**
 * The same application as tidemark_test.go's, on Kafka Streams. Arguments are KEY=VALUE: bootstrap, app, words,
 * counts, pairs, histories, and any setting of Kafka Streams. It prints what happens, a line each, until its
 * standard input says "leave" (leave the group) or "remain" (as KafkaStreams.close() does), or ends.
 */
public final class Interop {
  static final Serde<String> STRING = Serdes.String();
  static final String PLAIN = "plain";
  static final String STAMPED = "stamped";

  public static void main(String[] args) throws Exception {
    Map<String, String> names = new HashMap<>();
    Properties settings = new Properties();
    settings.put("statestore.cache.max.bytes", "0"); // every update goes downstream
    settings.put("commit.interval.ms", "100");
    settings.put("auto.offset.reset", "earliest");
    settings.put(StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG, Extractor.class);
    for (String arg : args) {
      String[] kv = arg.split("=", 2);
      if (kv[0].contains(".")) {
        settings.put(kv[0], kv[1]);
      } else {
        names.put(kv[0], kv[1]);
      }
    }
    settings.put("application.id", names.get("app"));
    settings.put("bootstrap.servers", names.get("bootstrap"));
    run(new KafkaStreams(topology(names), settings));
  }

  static void run(KafkaStreams streams) throws Exception {
    streams.setStateListener((to, from) -> say("state " + to));
    streams.setGlobalStateRestoreListener(new Restored());
    streams.setUncaughtExceptionHandler(e -> {
      for (Throwable t = e; t != null; t = t.getCause()) {
        say("failed " + t.getClass().getSimpleName() + ": " + String.valueOf(t.getMessage()).replace('\n', ' '));
      }
      return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    });
    streams.start();
    String word = new BufferedReader(new InputStreamReader(System.in)).readLine();
    CloseOptions how = CloseOptions.timeout(Duration.ofSeconds(30));
    if ("leave".equals(word)) {
      how = how.withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP);
    }
    boolean closed = streams.close(how);
    say("closed " + closed);
    System.exit(closed ? 0 : 1);
  }

  static Topology topology(Map<String, String> names) {
    StreamsBuilder b = new StreamsBuilder();
    b.stream(names.get("words"), Consumed.with(STRING, STRING))
        .flatMapValues(line -> Arrays.asList(line.split(" ")))
        .groupBy((key, word) -> word, Grouped.with(STRING, STRING))
        .count(Materialized.as("counts"))
        .toStream()
        .to(names.get("counts"), Produced.with(STRING, Serdes.Long()));
    KeyValueBytesStoreSupplier plain = Stores.persistentKeyValueStore(PLAIN);
    KeyValueBytesStoreSupplier stamped = Stores.persistentTimestampedKeyValueStore(STAMPED);
    b.addStateStore(Stores.keyValueStoreBuilder(plain, STRING, STRING));
    b.addStateStore(Stores.timestampedKeyValueStoreBuilder(stamped, STRING, STRING));
    b.stream(names.get("pairs"), Consumed.with(STRING, STRING))
        .process(Shift::new)
        .process(History::new, PLAIN, STAMPED)
        .to(names.get("histories"), Produced.with(STRING, STRING));
    return b.build();
  }

  /** Gives the records another timestamp than those of the topic have. */
  static final class Shift implements Processor<String, String, String, String> {
    private ProcessorContext<String, String> context;

    @Override
    public void init(ProcessorContext<String, String> context) {
      this.context = context;
    }

    @Override
    public void process(Record<String, String> r) {
      context.forward(r.withTimestamp(r.timestamp() - 500));
    }
  }

  /** Appends each value to what the key has had since its last null, which deletes it. */
  static final class History implements Processor<String, String, String, String> {
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, String> plain;
    private TimestampedKeyValueStore<String, String> stamped;

    @Override
    public void init(ProcessorContext<String, String> context) {
      this.context = context;
      plain = context.getStateStore(PLAIN);
      stamped = context.getStateStore(STAMPED);
    }

    @Override
    public void process(Record<String, String> r) {
      if (r.value() == null) {
        plain.delete(r.key());
        stamped.delete(r.key());
        context.forward(r);
        return;
      }
      String had = plain.get(r.key());
      String history = had == null ? r.value() : had + "," + r.value();
      ValueAndTimestamp<String> other = stamped.get(r.key());
      // An own time, not the record's.
      long stamp = other == null ? r.timestamp() / 2 : other.timestamp() + 1;
      if (!String.valueOf(had).equals(String.valueOf(ValueAndTimestamp.getValueOrNull(other)))) {
        throw new IllegalStateException("the stores differ at " + r.key() + ": " + had + ", " + other);
      }
      plain.put(r.key(), history);
      stamped.put(r.key(), ValueAndTimestamp.make(history, stamp));
      context.forward(r.withValue(history + "@" + stamp));
    }
  }

  /** Prints the partition time that the application knows at the first record of each partition. */
  public static final class Extractor implements TimestampExtractor {
    private static final Set<TopicPartition> SEEN = ConcurrentHashMap.newKeySet();

    @Override
    public long extract(ConsumerRecord<Object, Object> r, long partitionTime) {
      if (SEEN.add(new TopicPartition(r.topic(), r.partition()))) {
        say("first " + r.topic() + " " + r.partition() + " " + r.offset() + " " + partitionTime);
      }
      return r.timestamp();
    }
  }

  static final class Restored implements StateRestoreListener {
    @Override
    public void onRestoreStart(TopicPartition tp, String store, long from, long to) { }

    @Override
    public void onBatchRestored(TopicPartition tp, String store, long to, long count) { }

    @Override
    public void onRestoreEnd(TopicPartition tp, String store, long total) {
      say("restored " + store + " " + tp.partition() + " " + total);
    }
  }

  static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
