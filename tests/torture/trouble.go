package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// trouble does a step of the network.
func (w *world) trouble(s step) error {
	p := w.broker.proxy
	if p == nil {
		return errors.New("the broker has no proxy in front of it")
	}
	switch s[0] {
	case "break":
		p.breakAll()
	case "lose":
		p.loseAnswers()
	case "off":
		p.off()
	case "heal":
		p.heal()
	case "delay", "fail", "late", "early":
		return w.fault(p, s)
	default:
		return errors.New("no such trouble")
	}
	return nil
}

func (w *world) fault(p *proxy, s step) error {
	args := map[string]int{"delay": 2, "late": 3, "early": 3, "fail": 4}
	if len(s) != args[s[0]] {
		return errors.New("wrong number of arguments")
	}
	if s[0] == "delay" {
		d, err := time.ParseDuration(s[1])
		p.delayAnswers(d)
		return err
	}
	key, ok := requestKeys[s[1]]
	if !ok {
		return fmt.Errorf("no fault can be made for request %s", s[1])
	}
	f := fault{name: s.String(), key: key, left: 1}
	var err error
	switch s[0] {
	case "late":
		f.late, err = time.ParseDuration(s[2])
	case "early":
		f.early, err = time.ParseDuration(s[2])
	default:
		var code int64
		code, err = strconv.ParseInt(s[2], 10, 16)
		f.code = int16(code)
		if err == nil {
			f.left, err = strconv.Atoi(s[3])
		}
	}
	p.add(f)
	return err
}

// disk does something to the stores of a process that is dead. The process id, and with it the
// place in the group, stays.
func (w *world) disk(what, name string) error {
	if p := w.procs[name]; p != nil && p.alive() {
		return errors.New("it runs")
	}
	state, kept := filepath.Join(w.o.dir, name, w.names.app), filepath.Join(w.o.dir, name+".kept")
	if what == "keep" {
		if err := os.RemoveAll(kept); err != nil {
			return err
		}
		if _, err := os.Stat(state); errors.Is(err, os.ErrNotExist) {
			return nil // killed before it had any
		}
		return os.CopyFS(kept, os.DirFS(state))
	}
	if what == "damage" {
		return damage(state)
	}
	tasks, err := filepath.Glob(filepath.Join(state, "*_*"))
	if err != nil {
		return err
	}
	for _, dir := range tasks {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if what == "lose" {
		return nil
	}
	if tasks, err = filepath.Glob(filepath.Join(kept, "*_*")); err != nil {
		return err
	}
	for _, dir := range tasks {
		if err := os.CopyFS(filepath.Join(state, filepath.Base(dir)), os.DirFS(dir)); err != nil {
			return err
		}
	}
	return nil
}

// vanish deletes the stores of a process, as somebody does who clears a folder for temporary files.
func (w *world) vanish(name string) error {
	tasks, err := filepath.Glob(filepath.Join(w.o.dir, name, w.names.app, "*_*"))
	for _, dir := range tasks {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// damage makes all databases unreadable.
func damage(state string) error {
	manifests, err := filepath.Glob(filepath.Join(state, "*_*", "MANIFEST-*"))
	for _, m := range manifests {
		err = errors.Join(err, os.WriteFile(m, []byte("this is no manifest"), 0o600))
	}
	return err
}
