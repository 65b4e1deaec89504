import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.InternalTopicConfig;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * Runs the small programs of a case file on Kafka Streams and writes, for each, the text of
 * Topology.describe() and the internal topics. Usage: Describe CASES OUTPUT-DIRECTORY.
 *
 * A program is a list of statements "x = y.operation("text", variable, option="text")", where the
 * operation is that of Kafka Streams' StreamsBuilder, KStream, ... or, after a first line "topology",
 * of Topology. Functions are left out: they do not matter for names.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
public final class Describe {
    private static final Pattern STATEMENT = Pattern.compile("(?:(\\w+) = )?(?:(\\w+)\\.)?(\\w+)\\((.*)\\)");
    private static final Pattern ARGUMENT = Pattern.compile("(?:(\\w+)=)?(?:\"([^\"]*)\"|(\\w+))(?:, |$)");

    private final StreamsBuilder builder = new StreamsBuilder();
    private final Map<String, Object> variables = new HashMap<>();
    private final Map<String, StoreBuilder> stores = new HashMap<>();
    private Topology topology; // not null in a program of the Processor API

    // The arguments of the statement that is being run.
    private List<String> texts;
    private List<Object> values;
    private Map<String, String> options;

    public static void main(String[] args) throws Exception {
        Path out = Path.of(args[1]);
        Files.createDirectories(out);
        for (String part : Files.readString(Path.of(args[0])).split("(?m)^== ")) {
            if (part.isBlank() || part.startsWith("#")) {
                continue;
            }
            int end = part.indexOf('\n');
            String name = part.substring(0, end).strip();
            List<String> program = part.substring(end).lines().map(String::strip).filter(l -> !l.isEmpty()).toList();
            Path file = out.resolve(name + ".txt");
            Files.createDirectories(file.getParent());
            String result = run(program);
            if (name.startsWith("refused-") != result.startsWith("-- error --")) {
                throw new Error(name + ": " + result);
            }
            Files.writeString(file, String.join("\n", program) + "\n" + result);
        }
    }

    private static String run(List<String> program) throws Exception {
        Topology t;
        try {
            t = new Describe().build(program);
        } catch (RuntimeException e) {
            return "-- error --\n" + e.getMessage().strip() + "\n";
        }
        return "-- describe --\n" + t.describe() + "-- topics --\n" + topics(t);
    }

    private Topology build(List<String> program) {
        for (String line : program) {
            if (line.startsWith("#")) {
                continue;
            }
            if (line.equals("topology")) {
                topology = new Topology();
                continue;
            }
            Matcher m = STATEMENT.matcher(line);
            if (!m.matches()) {
                throw new Error("not a statement: " + line);
            }
            arguments(m.group(4));
            Object result = m.group(2) != null ? call(variable(m.group(2)), m.group(3))
                : topology != null ? callTopology(m.group(3)) : callBuilder(m.group(3));
            if (m.group(1) != null) {
                variables.put(m.group(1), result);
            }
        }
        return topology != null ? topology : builder.build();
    }

    private void arguments(String list) {
        texts = new ArrayList<>();
        values = new ArrayList<>();
        options = new HashMap<>();
        Matcher m = ARGUMENT.matcher(list);
        int end = 0;
        while (end < list.length() && m.find(end) && m.start() == end) {
            if (m.group(1) != null) {
                options.put(m.group(1), m.group(2));
            } else if (m.group(2) != null) {
                texts.add(m.group(2));
            } else {
                values.add(variable(m.group(3)));
            }
            end = m.end();
        }
        if (end < list.length()) {
            throw new Error("not a list of arguments: " + list);
        }
    }

    private Object variable(String name) {
        Object v = variables.get(name);
        if (v == null) {
            throw new Error("no variable " + name);
        }
        return v;
    }

    private Object callBuilder(String op) {
        switch (op) {
            case "stream":
                return builder.stream(texts, named() ? Consumed.as(as()) : Consumed.with(null, null));
            case "table":
                Consumed c = named() ? Consumed.as(as()) : Consumed.with(null, null);
                return options.containsKey("store") ? builder.table(texts.get(0), c, materialized()) : builder.table(texts.get(0), c);
            case "globalTable":
                return builder.globalTable(texts.get(0), named() ? Consumed.as(as()) : Consumed.with(null, null));
            case "addStateStore":
                return builder.addStateStore(store(texts.get(0)));
            default:
                throw new Error("no operation " + op);
        }
    }

    private Object callTopology(String op) {
        String name = texts.get(0);
        switch (op) {
            case "addSource":
                return topology.addSource(name, list("topics"));
            case "addProcessor":
                return topology.addProcessor(name, processor(list("own")), list("parents"));
            case "addSink":
                return topology.addSink(name, options.get("topic"), list("parents"));
            case "addStateStore":
                return topology.addStateStore(store(name), list("processors"));
            case "connectProcessorAndStateStores":
                return topology.connectProcessorAndStateStores(name, list("stores"));
            default:
                throw new Error("no operation " + op);
        }
    }

    private Object call(Object on, String op) {
        if (on instanceof KStream) {
            return callStream((KStream) on, op);
        } else if (on instanceof KTable) {
            return callTable((KTable) on, op);
        } else if (on instanceof KGroupedStream) {
            return callGrouped((KGroupedStream) on, op);
        } else if (on instanceof KGroupedTable) {
            return callGroupedTable((KGroupedTable) on, op);
        } else if (on instanceof TimeWindowedKStream) {
            TimeWindowedKStream w = (TimeWindowedKStream) on;
            return options.containsKey("store") ? w.count(materialized()) : w.count();
        } else if (on instanceof BranchedKStream) {
            return branch((BranchedKStream) on, op);
        }
        throw new Error("nothing to call on " + on);
    }

    private Object callStream(KStream s, String op) {
        KeyValueMapper pair = (k, v) -> KeyValue.pair(k, v), pairs = (k, v) -> List.of(KeyValue.pair(k, v)), key = (k, v) -> v;
        ValueMapper value = v -> v, valueList = v -> List.of(v);
        Predicate all = (k, v) -> true;
        ForeachAction nothing = (k, v) -> { };
        switch (op) {
            case "filter": return named() ? s.filter(all, name()) : s.filter(all);
            case "filterNot": return named() ? s.filterNot(all, name()) : s.filterNot(all);
            case "selectKey": return named() ? s.selectKey(key, name()) : s.selectKey(key);
            case "map": return named() ? s.map(pair, name()) : s.map(pair);
            case "mapValues": return named() ? s.mapValues(value, name()) : s.mapValues(value);
            case "flatMap": return named() ? s.flatMap(pairs, name()) : s.flatMap(pairs);
            case "flatMapValues": return named() ? s.flatMapValues(valueList, name()) : s.flatMapValues(valueList);
            case "peek": return named() ? s.peek(nothing, name()) : s.peek(nothing);
            case "merge": return named() ? s.merge((KStream) values.get(0), name()) : s.merge((KStream) values.get(0));
            case "split": return named() ? s.split(name()) : s.split();
            case "repartition": return options.isEmpty() ? s.repartition() : s.repartition(repartitioned());
            case "groupByKey": return named() ? s.groupByKey(Grouped.as(as())) : s.groupByKey();
            case "groupBy": return named() ? s.groupBy(key, Grouped.as(as())) : s.groupBy(key);
            case "process": return named() ? s.process(processor(list("own")), name(), list("stores"))
                : s.process(processor(list("own")), list("stores"));
            case "processValues": return named() ? s.processValues(fixedKeyProcessor(), name(), list("stores"))
                : s.processValues(fixedKeyProcessor(), list("stores"));
            case "toTable":
                return named() ? (options.containsKey("store") ? s.toTable(name(), materialized()) : s.toTable(name()))
                    : options.containsKey("store") ? s.toTable(materialized()) : s.toTable();
            case "join": return joinStream(s, false);
            case "leftJoin": return joinStream(s, true);
            case "foreach":
                if (named()) {
                    s.foreach(nothing, name());
                } else {
                    s.foreach(nothing);
                }
                return null;
            case "to":
                if (named()) {
                    s.to(texts.get(0), Produced.as(as()));
                } else {
                    s.to(texts.get(0));
                }
                return null;
            default: throw new Error("no operation " + op);
        }
    }

    private Object joinStream(KStream s, boolean left) {
        Object other = values.get(0);
        ValueJoiner joiner = (a, b) -> a;
        if (other instanceof KTable) {
            return left ? s.leftJoin((KTable) other, joiner) : s.join((KTable) other, joiner);
        } else if (other instanceof GlobalKTable) {
            KeyValueMapper key = (k, v) -> k;
            return left ? s.leftJoin((GlobalKTable) other, key, joiner) : s.join((GlobalKTable) other, key, joiner);
        }
        JoinWindows w = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(1));
        return left ? s.leftJoin((KStream) other, joiner, w) : s.join((KStream) other, joiner, w);
    }

    private Object callTable(KTable t, String op) {
        boolean store = options.containsKey("store");
        Predicate all = (k, v) -> true;
        ValueMapper value = v -> v;
        ValueJoiner joiner = (a, b) -> a;
        switch (op) {
            case "toStream": return named() ? t.toStream(name()) : t.toStream();
            case "filter":
                return named() ? (store ? t.filter(all, name(), materialized()) : t.filter(all, name()))
                    : store ? t.filter(all, materialized()) : t.filter(all);
            case "filterNot":
                return named() ? (store ? t.filterNot(all, name(), materialized()) : t.filterNot(all, name()))
                    : store ? t.filterNot(all, materialized()) : t.filterNot(all);
            case "mapValues":
                return named() ? (store ? t.mapValues(value, name(), materialized()) : t.mapValues(value, name()))
                    : store ? t.mapValues(value, materialized()) : t.mapValues(value);
            case "groupBy": return t.groupBy((k, v) -> KeyValue.pair(k, v));
            case "join": return t.join((KTable) values.get(0), joiner);
            default: throw new Error("no operation " + op);
        }
    }

    private Object callGrouped(KGroupedStream g, String op) {
        // materialized="with" is a Materialized without a name, which is not the same as none.
        boolean m = options.containsKey("store") || options.containsKey("materialized");
        Reducer reducer = (a, b) -> b;
        Initializer zero = () -> 0L;
        Aggregator add = (k, v, a) -> a;
        switch (op) {
            case "count":
                return named() ? (m ? g.count(name(), materialized()) : g.count(name())) : m ? g.count(materialized()) : g.count();
            case "reduce":
                return named() ? g.reduce(reducer, name(), materialized()) : m ? g.reduce(reducer, materialized()) : g.reduce(reducer);
            case "aggregate":
                return named() ? g.aggregate(zero, add, name(), materialized())
                    : m ? g.aggregate(zero, add, materialized()) : g.aggregate(zero, add);
            case "windowedBy": return g.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1)));
            default: throw new Error("no operation " + op);
        }
    }

    private Object callGroupedTable(KGroupedTable g, String op) {
        if (!op.equals("count")) {
            throw new Error("no operation " + op);
        }
        return options.containsKey("store") ? g.count(materialized()) : g.count();
    }

    /** Gives the new stream of a branch, which Kafka Streams hands out only in a map of all. */
    private static KStream added(BranchedKStream b, Set<String> before) {
        Map<String, KStream> all = new HashMap<>(b.noDefaultBranch());
        all.keySet().removeAll(before);
        return all.values().iterator().next();
    }

    private Object branch(BranchedKStream b, String op) {
        Set<String> before = new HashSet<>(b.noDefaultBranch().keySet());
        Predicate all = (k, v) -> true;
        if (op.equals("branch")) {
            Object unused = named() ? b.branch(all, Branched.as(as())) : b.branch(all);
        } else if (op.equals("defaultBranch")) {
            Object unused = named() ? b.defaultBranch(Branched.as(as())) : b.defaultBranch();
        } else {
            throw new Error("no operation " + op);
        }
        return added(b, before);
    }

    private boolean named() {
        return options.containsKey("as");
    }

    private String as() {
        return options.get("as");
    }

    private Named name() {
        return Named.as(as());
    }

    private Materialized materialized() {
        return options.containsKey("store") ? Materialized.as(options.get("store")) : Materialized.with(null, null);
    }

    private Repartitioned repartitioned() {
        Repartitioned r = named() ? Repartitioned.as(as()) : Repartitioned.with(null, null);
        return options.containsKey("partitions") ? r.withNumberOfPartitions(Integer.parseInt(options.get("partitions"))) : r;
    }

    private String[] list(String option) {
        String text = options.getOrDefault(option, "");
        return text.isEmpty() ? new String[0] : text.split(",");
    }

    /** Gives the one builder of a name: processors that bring a store along share it only with the same builder. */
    private StoreBuilder store(String name) {
        return stores.computeIfAbsent(name,
            n -> Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(n), Serdes.String(), Serdes.Long()));
    }

    private ProcessorSupplier processor(String[] own) {
        return new ProcessorSupplier() {
            @Override
            public Processor get() {
                return new Processor() { // not a lambda: Kafka Streams wants a new object each time
                    @Override
                    public void process(Record record) { }
                };
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                Set<StoreBuilder<?>> stores = new HashSet<>();
                for (String s : own) {
                    stores.add(store(s));
                }
                return own.length == 0 ? null : stores;
            }
        };
    }

    private static FixedKeyProcessorSupplier fixedKeyProcessor() {
        return () -> new FixedKeyProcessor() {
            @Override
            public void process(FixedKeyRecord record) { }
        };
    }

    /** Lists sources, sinks and internal topics of each sub-topology, sorted, as the group leader would create them. */
    private static String topics(Topology t) throws ReflectiveOperationException {
        Field field = Topology.class.getDeclaredField("internalTopologyBuilder");
        field.setAccessible(true);
        InternalTopologyBuilder b = (InternalTopologyBuilder) field.get(t);
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        b.rewriteTopology(new StreamsConfig(p));
        b.buildTopology(); // decides on the changelogs
        StringBuilder out = new StringBuilder();
        for (var entry : b.subtopologyToTopicsInfo().entrySet()) {
            Field id = entry.getKey().getClass().getDeclaredField("nodeGroupId");
            id.setAccessible(true);
            InternalTopologyBuilder.TopicsInfo info = entry.getValue();
            out.append("sub-topology ").append(id.get(entry.getKey())).append('\n');
            line(out, "sources", info.sourceTopics);
            line(out, "sinks", info.sinkTopics);
            configs(out, "repartition", info.repartitionSourceTopics.values());
            configs(out, "changelog", info.stateChangelogTopics.values());
        }
        return out.toString();
    }

    private static void line(StringBuilder out, String what, Collection<String> names) {
        if (!names.isEmpty()) {
            out.append("  ").append(what).append(' ').append(String.join(" ", new TreeSet<>(names))).append('\n');
        }
    }

    private static void configs(StringBuilder out, String what, Collection<InternalTopicConfig> topics) {
        Map<String, String> sorted = new TreeMap<>();
        for (InternalTopicConfig c : topics) {
            StringBuilder s = new StringBuilder();
            c.numberOfPartitions().ifPresent(n -> s.append(" partitions=").append(n));
            new TreeMap<>(c.properties(Map.of(), Duration.ofDays(1).toMillis())).forEach((k, v) -> s.append(' ').append(k).append('=').append(v));
            sorted.put(c.name(), s.toString());
        }
        sorted.forEach((name, s) -> out.append("  ").append(what).append(' ').append(name).append(s).append('\n'));
    }
}
