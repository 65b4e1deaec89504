package processor_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-streams/tidemark/processor"
	"github.com/tidemark-streams/tidemark/serde"
)

// guarded gives stores with a guard to handles.
type guarded struct{ stores *processor.Stores }

func (g guarded) Stores() *processor.Stores { return g.stores }

// Every method of every kind of store asks the guard, and lets an iteration go no further than it allows.
func TestGuard(t *testing.T) {
	refused := errors.New("not here")
	kv := processor.KeyValue("kv", serde.String, serde.Int64)
	tkv := processor.TimestampedKeyValue("tkv", serde.String, serde.Int64)
	window := processor.Window("window", serde.String, serde.Int64, time.Second, time.Hour)
	twindow := processor.TimestampedWindow("twindow", serde.String, serde.Int64, time.Second, time.Hour)
	session := processor.Session("session", serde.String, serde.Int64, time.Hour)
	versioned := processor.Versioned("versioned", serde.String, serde.Int64, time.Hour)
	_, err := inStores(t, func(ctx strCtx) error {
		var allowed error
		in := guarded{ctx.Stores().Guarded(func() error { return allowed })}
		if once := kv.In(in); once != kv.In(in) || once == kv.In(ctx) {
			t.Error("a guarded view is not made once, apart from the one that is not guarded")
		}
		for _, s := range []any{kv.In(in), tkv.In(in), window.In(in), twindow.In(in), session.In(in), versioned.In(in)} {
			v := reflect.ValueOf(s)
			methods := 0
			for i := range v.NumMethod() {
				name := v.Type().Method(i).Name
				if name == "Name" {
					continue
				}
				methods++
				allowed = nil
				if err := firstError(call(v.Method(i))); err != nil && !strings.Contains(err.Error(), "negative") {
					t.Errorf("%v.%s, allowed: %v", v.Type(), name, err)
				}
				allowed = refused
				if err := firstError(call(v.Method(i))); !errors.Is(err, refused) || !strings.Contains(err.Error(), "store ") {
					t.Errorf("%v.%s, refused: %v", v.Type(), name, err)
				}
			}
			if methods < 5 {
				t.Errorf("%v: only %d methods", v.Type(), methods)
			}
		}
		allowed = nil
		at := time.UnixMilli(1000)
		for _, key := range []string{"a", "b"} {
			_, err := versioned.In(ctx).Put(key, 1, at)
			if err := errors.Join(err, kv.In(ctx).Put(key, 1), tkv.In(ctx).Put(key, 1, at), window.In(ctx).Put(key, 1, at), twindow.In(ctx).Put(key, 1, at, at), session.In(ctx).Put(key, 1, at, at)); err != nil {
				return err
			}
		}
		for _, s := range []any{kv.In(in), tkv.In(in), window.In(in), twindow.In(in), session.In(in), versioned.In(in)} {
			allowed = nil
			var told []error
			iterate(reflect.ValueOf(s).MethodByName("All").Call(nil)[0], func(err error) { told = append(told, err); allowed = refused })
			if len(told) != 2 || told[0] != nil || !errors.Is(told[1], refused) {
				t.Errorf("%T.All, refused after the first entry: %v", s, told)
			}
		}
		return nil
	}, kv, tkv, window, twindow, session, versioned)
	if err != nil {
		t.Error(err)
	}
}

// call calls a method of a store with zero values, and a time that a store can have.
func call(method reflect.Value) []reflect.Value {
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		if i == method.Type().NumIn()-1 && method.Type().IsVariadic() {
			in = in.Elem()
		}
		if in == reflect.TypeFor[time.Time]() {
			args = append(args, reflect.ValueOf(time.UnixMilli(500)))
			continue
		}
		args = append(args, reflect.Zero(in))
	}
	return method.Call(args)
}

// firstError looks for one among results, and in the first turn of an iteration.
func firstError(results []reflect.Value) (err error) {
	for _, r := range results {
		if r.Kind() == reflect.Func {
			iterate(r, func(turn error) { err = errors.Join(err, turn) })
		} else if r.Type() == reflect.TypeFor[error]() && !r.IsNil() {
			err = r.Interface().(error)
		}
	}
	return err
}

// iterate calls f with the error of each turn.
func iterate(seq reflect.Value, f func(error)) {
	yield := reflect.MakeFunc(seq.Type().In(0), func(args []reflect.Value) []reflect.Value {
		err, _ := args[1].Interface().(error)
		f(err)
		return []reflect.Value{reflect.ValueOf(true)}
	})
	seq.Call([]reflect.Value{yield})
}

// A store that is not connected says what the guard says first.
func TestGuardOfNoStores(t *testing.T) {
	none, err := processor.NewStores("nobody", nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("not here")
	_, _, err = plain.In(guarded{none.Guarded(func() error { return refused })}).Get("a")
	if !errors.Is(err, refused) || errors.Is(err, processor.ErrNotConnected) {
		t.Error(err)
	}
	_, _, err = plain.In(guarded{none.Guarded(func() error { return nil })}).Get("a")
	if !errors.Is(err, processor.ErrNotConnected) {
		t.Error(err)
	}
}
