import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
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
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * The same application as tidemark_test.go's, on Kafka Streams. Arguments are KEY=VALUE: bootstrap, app, words (without
 * it, the words are not counted), counts, pairs, histories, kinds, shift, mirror (see Shift and Kinds), and any setting of Kafka Streams. It prints what happens, a line each, until its
 * standard input says "leave" (leave the group) or "remain" (as KafkaStreams.close() does), or ends.
 */
public final class Interop {
  static final Serde<String> STRING = Serdes.String();
  static final String PLAIN = "plain";
  static final String STAMPED = "stamped";
  static final String WINDOWS = "windows";
  static final String STAMPED_WINDOWS = "stamped-windows";
  static final String DUPLICATES = "duplicates";
  static final String SESSIONS = "sessions";
  static final String VERSIONS = "versions";
  static final Duration SIZE = Duration.ofSeconds(10);
  static final Duration GAP = Duration.ofSeconds(3);
  static final Duration RETENTION = Duration.ofHours(1);

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
    if (names.containsKey("words")) {
      b.stream(names.get("words"), Consumed.with(STRING, STRING))
          .flatMapValues(line -> Arrays.asList(line.split(" ")))
          .groupBy((key, word) -> word, Grouped.with(STRING, STRING))
          .count(Materialized.as("counts"))
          .toStream()
          .to(names.get("counts"), Produced.with(STRING, Serdes.Long()));
    }
    KeyValueBytesStoreSupplier plain = Stores.persistentKeyValueStore(PLAIN);
    KeyValueBytesStoreSupplier stamped = Stores.persistentTimestampedKeyValueStore(STAMPED);
    b.addStateStore(Stores.keyValueStoreBuilder(plain, STRING, STRING));
    b.addStateStore(Stores.timestampedKeyValueStoreBuilder(stamped, STRING, STRING));
    b.addStateStore(Stores.windowStoreBuilder(Stores.persistentWindowStore(WINDOWS, RETENTION, SIZE, false), STRING, Serdes.Long()));
    b.addStateStore(Stores.timestampedWindowStoreBuilder(
        Stores.persistentTimestampedWindowStore(STAMPED_WINDOWS, RETENTION, SIZE, false), STRING, STRING));
    b.addStateStore(Stores.windowStoreBuilder(Stores.persistentWindowStore(DUPLICATES, RETENTION, SIZE, true), STRING, STRING));
    b.addStateStore(Stores.sessionStoreBuilder(Stores.persistentSessionStore(SESSIONS, RETENTION), STRING, Serdes.Long()));
    b.addStateStore(Stores.versionedKeyValueStoreBuilder(Stores.persistentVersionedKeyValueStore(VERSIONS, RETENTION), STRING, STRING));
    KStream<String, String> pairs = b.stream(names.get("pairs"), Consumed.with(STRING, STRING)).process(() -> new Shift(Long.parseLong(names.get("shift"))));
    pairs.process(History::new, PLAIN, STAMPED)
        .to(names.get("histories"), Produced.with(STRING, STRING));
    pairs.process(() -> new Kinds(Long.parseLong(names.get("mirror"))), WINDOWS, STAMPED_WINDOWS, DUPLICATES, SESSIONS, VERSIONS)
        .to(names.get("kinds"), Produced.with(STRING, STRING));
    return b.build();
  }

  /** Gives the records another timestamp than those of the topic have. */
  static final class Shift implements Processor<String, String, String, String> {
    private final long by;
    private ProcessorContext<String, String> context;

    Shift(long by) {
      this.by = by;
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
      this.context = context;
    }

    @Override
    public void process(Record<String, String> r) {
      context.forward(r.withTimestamp(r.timestamp() - by));
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

  /**
   * Keeps each record in a store of every other kind, and says what they have then. A null deletes. The times of
   * versions are mirrored: those of a later part of the input are later. Kafka Streams does not find what a versioned
   * store holds of older times after a restart with its state directory, until it writes there again.
   */
  static final class Kinds implements Processor<String, String, String, String> {
    private final long mirror;
    private ProcessorContext<String, String> context;
    private WindowStore<String, Long> windows;
    private TimestampedWindowStore<String, String> stamped;
    private WindowStore<String, String> duplicates;
    private SessionStore<String, Long> sessions;
    private VersionedKeyValueStore<String, String> versions;

    Kinds(long mirror) {
      this.mirror = mirror;
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
      this.context = context;
      windows = context.getStateStore(WINDOWS);
      stamped = context.getStateStore(STAMPED_WINDOWS);
      duplicates = context.getStateStore(DUPLICATES);
      sessions = context.getStateStore(SESSIONS);
      versions = context.getStateStore(VERSIONS);
    }

    @Override
    public void process(Record<String, String> r) {
      String said = window(r) + " " + duplicates(r) + " " + session(r) + " " + version(r);
      context.forward(r.withValue(said));
    }

    private String window(Record<String, String> r) {
      long start = r.timestamp() - r.timestamp() % SIZE.toMillis();
      Long had = windows.fetch(r.key(), start);
      windows.put(r.key(), r.value() == null ? null : had == null ? 1L : had + 1, start);
      stamped.put(r.key(), r.value() == null ? null : ValueAndTimestamp.make(r.value(), r.timestamp() - 7_000), start);
      List<String> all = new ArrayList<>();
      try (WindowStoreIterator<Long> i = windows.fetch(r.key(), start - 20_000, start + 20_000)) {
        i.forEachRemaining(w -> all.add(w.key + ":" + w.value));
      }
      try (WindowStoreIterator<ValueAndTimestamp<String>> i = stamped.backwardFetch(r.key(), start - 20_000, start + 20_000)) {
        i.forEachRemaining(w -> all.add(w.value.value() + "@" + w.value.timestamp()));
      }
      return String.join(",", all);
    }

    private String duplicates(Record<String, String> r) {
      long start = r.timestamp() - r.timestamp() % SIZE.toMillis();
      if (r.value() != null) {
        duplicates.put(r.key(), r.value(), start);
      }
      List<String> all = new ArrayList<>();
      try (WindowStoreIterator<String> i = duplicates.fetch(r.key(), start, start)) {
        i.forEachRemaining(w -> all.add(w.value));
      }
      return String.join(",", all);
    }

    private String session(Record<String, String> r) {
      long start = r.timestamp();
      long end = r.timestamp();
      long count = 1;
      List<Windowed<String>> touching = new ArrayList<>();
      try (KeyValueIterator<Windowed<String>, Long> i = sessions.findSessions(r.key(), start - GAP.toMillis(), end + GAP.toMillis())) {
        while (i.hasNext()) {
          KeyValue<Windowed<String>, Long> s = i.next();
          touching.add(s.key);
          start = Math.min(start, s.key.window().start());
          end = Math.max(end, s.key.window().end());
          count += s.value;
        }
      }
      touching.forEach(sessions::remove);
      if (r.value() != null) {
        sessions.put(new Windowed<>(r.key(), new SessionWindow(start, end)), count);
      }
      return touching.size() + ":" + start + "-" + end + ":" + count;
    }

    private String version(Record<String, String> r) {
      String was;
      long time = mirror - r.timestamp();
      if (r.value() == null) {
        was = show(versions.delete(r.key(), time));
      } else {
        was = String.valueOf(versions.put(r.key(), r.value(), time));
      }
      return was + "/" + show(versions.get(r.key())) + "/" + show(versions.get(r.key(), time - 10_000));
    }

    private static String show(VersionedRecord<String> v) {
      return v == null ? "none" : v.value() + "@" + v.timestamp(); // this view gives no validTo
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
