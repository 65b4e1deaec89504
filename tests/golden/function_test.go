package golden

import "strings"

// unsupported is the panic of a case that needs what does not exist yet.
type unsupported struct{ what string }

func predicate(name string) func(k, v any) bool {
	switch name {
	case "true":
		return func(_, _ any) bool { return true }
	case "false":
		return func(_, _ any) bool { return false }
	case "even":
		return func(_, v any) bool { return v != nil && num(v)%2 == 0 }
	case "big":
		return func(_, v any) bool { return v != nil && num(v) >= 5 }
	case "nonNull":
		return func(_, v any) bool { return v != nil }
	case "keyA":
		return func(k, _ any) bool { return k != nil && strings.HasPrefix(text(k), "a") }
	}
	panic(unsupported{"predicate " + name})
}

func valueFunction(name string) func(k, v any) any {
	switch name {
	case "isNull":
		return func(_, v any) any {
			if v == nil {
				return "yes"
			}
			return "no"
		}
	case "orEmpty":
		return func(_, v any) any {
			if v == nil {
				return "EMPTY"
			}
			return v
		}
	case "null":
		return func(_, _ any) any { return nil }
	case "withKey":
		return func(k, v any) any { return text(k) + "=" + text(v) }
	}
	f := ofValue(name)
	return func(_, v any) any {
		if v == nil {
			return nil
		}
		return f(v)
	}
}

// ofValue gives the functions that are null for null.
func ofValue(name string) func(v any) any {
	switch name {
	case "id":
		return func(v any) any { return v }
	case "upper":
		return func(v any) any { return strings.ToUpper(text(v)) }
	case "len":
		return func(v any) any { return int64(len(text(v))) }
	case "num":
		return func(v any) any { return num(v) }
	case "double":
		return func(v any) any { return 2 * num(v) }
	case "text":
		return func(v any) any { return text(v) }
	case "first":
		return func(v any) any { return first(text(v)) }
	case "nullIfEven":
		return func(v any) any {
			if num(v)%2 == 0 {
				return nil
			}
			return v
		}
	}
	panic(unsupported{"value function " + name})
}

func keyFunction(name string) func(k, v any) any {
	ofKey := func(f func(k any) any) func(k, v any) any {
		return func(k, _ any) any {
			if k == nil {
				return nil
			}
			return f(k)
		}
	}
	ofValue := func(f func(v any) any) func(k, v any) any {
		return func(_, v any) any {
			if v == nil {
				return nil
			}
			return f(v)
		}
	}
	switch name {
	case "key":
		return ofKey(func(k any) any { return k })
	case "keyFirst":
		return ofKey(func(k any) any { return first(text(k)) })
	case "keyUpper":
		return ofKey(func(k any) any { return strings.ToUpper(text(k)) })
	case "nullKey":
		return func(_, _ any) any { return nil }
	case "unwindow":
		return ofKey(func(k any) any { return k.(windowed).key })
	case "windowKey":
		return ofKey(func(k any) any { return text(k) })
	case "byValue":
		return ofValue(func(v any) any { return text(v) })
	case "firstchar":
		return ofValue(func(v any) any { return first(text(v)) })
	case "head":
		return ofValue(head)
	case "parity":
		return ofValue(func(v any) any {
			if num(v)%2 == 0 {
				return "even"
			}
			return "odd"
		})
	case "nullIfEven":
		return func(k, v any) any {
			if v != nil && num(v)%2 == 0 {
				return nil
			}
			return k
		}
	}
	panic(unsupported{"key function " + name})
}

// pairFunction is a function for map: a key function, or swap.
func pairFunction(name string) func(k, v any) (any, any) {
	if name != "swap" {
		f := keyFunction(name)
		return func(k, v any) (any, any) { return f(k, v), v }
	}
	nullable := func(v any) any {
		if v == nil {
			return nil
		}
		return text(v)
	}
	return func(k, v any) (any, any) { return nullable(v), nullable(k) }
}

func flatValues(name string) func(v any) []any {
	switch name {
	case "split":
		return func(v any) (words []any) {
			if v == nil {
				return nil
			}
			for _, w := range wordsOf(v) {
				words = append(words, w)
			}
			return words
		}
	case "twice":
		return func(v any) []any { return []any{v, v} }
	case "none":
		return func(any) []any { return nil }
	}
	panic(unsupported{"flat function " + name})
}

func flatPairs(name string) func(k, v any) [][2]any {
	switch name {
	case "words":
		return func(_, v any) (pairs [][2]any) {
			if v == nil {
				return nil
			}
			for _, w := range wordsOf(v) {
				pairs = append(pairs, [2]any{w, v})
			}
			return pairs
		}
	case "twice":
		return func(k, v any) [][2]any {
			if k == nil {
				return [][2]any{{nil, v}, {nil, v}}
			}
			return [][2]any{{k, v}, {text(k) + "2", v}}
		}
	case "none":
		return func(_, _ any) [][2]any { return nil }
	}
	panic(unsupported{"flat function " + name})
}

func wordsOf(v any) []string {
	return strings.FieldsFunc(text(v), func(r rune) bool { return r == ' ' })
}

func text0(v any) string {
	if v == nil {
		return ""
	}
	return text(v)
}

// aggregator gives the functions of aggregate and value.
func aggregator(name string) func(agg, v any) any {
	join := func(by string) func(agg, v any) any {
		return func(agg, v any) any { return text0(agg) + by + text(v) }
	}
	switch name {
	case "plus":
		return join("+")
	case "minus":
		return join("-")
	case "merge":
		return join("&")
	case "sum":
		return func(agg, v any) any { return num(agg) + num(v) }
	case "subtract":
		return func(agg, v any) any { return num(agg) - num(v) }
	case "max":
		return func(agg, v any) any { return max(num(agg), num(v)) }
	case "min":
		return func(agg, v any) any {
			if agg == nil {
				return num(v)
			}
			return min(num(agg), num(v))
		}
	case "last":
		return func(_, v any) any { return v }
	case "keep":
		return func(agg, _ any) any { return agg }
	case "plusOrNull":
		return func(agg, v any) any {
			if v == "x" {
				return nil
			}
			return join("+")(agg, v)
		}
	}
	panic(unsupported{"aggregation function " + name})
}
