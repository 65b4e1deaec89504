import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/**
 * Times how long Kafka Streams needs at start to look into its task directories.
 *
 * <pre>
 * Open make BROKERS STATE_DIR TASKS STORE_BYTES   make the directories, close cleanly
 * Open open BROKERS STATE_DIR TASKS               start on them, print one line of JSON
 * </pre>
 *
 * One table on one topic with a partition for each task; the topic is the table's changelog, so
 * that nothing is written twice. Everything that is opened on the thread that calls
 * KafkaStreams.start() is the scan of the state directory.
 */
public class Open {
    static final String APP = "bench-open";
    static final String TOPIC = "bench-open-in";
    static final AtomicLong opensOnMain = new AtomicLong();
    static final AtomicLong opensElsewhere = new AtomicLong();

    /** Changes nothing; RocksDBStore calls it at every open. */
    public static class Counter implements RocksDBConfigSetter {
        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            ("main".equals(Thread.currentThread().getName()) ? opensOnMain : opensElsewhere).incrementAndGet();
        }

        @Override
        public void close(String store, Options options) {}
    }

    public static void main(String[] args) throws Exception {
        String brokers = args[1];
        String stateDir = args[2];
        int tasks = Integer.parseInt(args[3]);
        if (args[0].equals("make")) {
            fill(brokers, tasks, Integer.parseInt(args[4]));
            KafkaStreams streams = new KafkaStreams(topology(), config(brokers, stateDir));
            CountDownLatch running = running(streams);
            streams.start();
            running.await(); // all records are in the stores: they are the changelog, and were restored
            streams.close(Duration.ofMinutes(5));
            return;
        }
        long begun = System.nanoTime();
        KafkaStreams streams = new KafkaStreams(topology(), config(brokers, stateDir));
        CountDownLatch running = running(streams);
        long cpu = cpu();
        long called = System.nanoTime();
        streams.start();
        double scan = (System.nanoTime() - called) / 1e6;
        double scanCpu = (cpu() - cpu) / 1e6;
        long opens = opensOnMain.get();
        if (!running.await(10, TimeUnit.MINUTES)) {
            throw new IllegalStateException("not running after 10 minutes");
        }
        System.out.printf("{\"tasks\":%d,\"scan_ms\":%.1f,\"scan_cpu_ms\":%.1f,\"scan_opens\":%d,\"running_ms\":%.1f,\"opens_after\":%d}%n",
            tasks, scan, scanCpu, opens, (System.nanoTime() - begun) / 1e6, opensElsewhere.get());
        streams.close(Duration.ofMinutes(5));
    }

    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    static CountDownLatch running(KafkaStreams streams) {
        CountDownLatch latch = new CountDownLatch(1);
        streams.setStateListener((to, from) -> {
            if (to == KafkaStreams.State.RUNNING) {
                latch.countDown();
            }
        });
        return latch;
    }

    static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.table(TOPIC, Consumed.with(Serdes.Bytes(), Serdes.ByteArray()),
            Materialized.<Bytes, byte[], KeyValueStore<Bytes, byte[]>>as("kv"));
        Properties p = new Properties();
        p.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        return builder.build(p);
    }

    static Properties config(String brokers, String stateDir) {
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, APP);
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        p.put(StreamsConfig.STATE_DIR_CONFIG, stateDir);
        p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Runtime.getRuntime().availableProcessors());
        p.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Counter.class);
        p.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        p.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // Without it a restart waits for the session timeout of the member that closed.
        p.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, "one");
        return p;
    }

    /** Fills the topic and commits the group behind the records, so that they count as changelog. */
    static void fill(String brokers, int tasks, int storeBytes) throws Exception {
        Properties p = new Properties();
        p.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        p.put(ProducerConfig.LINGER_MS_CONFIG, 20);
        p.put(ProducerConfig.BATCH_SIZE_CONFIG, 1 << 17);
        p.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        p.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        try (Admin admin = Admin.create(p)) {
            NewTopic topic = new NewTopic(TOPIC, tasks, (short) 1).configs(Map.of(TopicConfig.CLEANUP_POLICY_CONFIG, "compact"));
            admin.createTopics(List.of(topic)).all().get();
        }
        Random random = new Random(1);
        int records = Math.max(1, storeBytes / 1000);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            for (int task = 0; task < tasks; task++) {
                for (int i = 0; i < records; i++) {
                    byte[] value = new byte[984];
                    random.nextBytes(value);
                    producer.send(new ProducerRecord<>(TOPIC, task, String.format("key%013d", i).getBytes(), value));
                }
            }
        }
        try (Admin admin = Admin.create(p)) {
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            for (int task = 0; task < tasks; task++) {
                ends.put(new TopicPartition(TOPIC, task), new OffsetAndMetadata(records));
            }
            admin.alterConsumerGroupOffsets(APP, ends).all().get();
        }
    }
}
