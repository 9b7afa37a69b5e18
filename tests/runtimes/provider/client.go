package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
)

// errGone says that the server knows no such thing.
var errGone = errors.New("no such thing")

// thing is one resource as the server holds it.
type thing struct {
	ID           string `json:"id,omitempty"`
	Name         string `json:"name"`
	Value        string `json:"value"`
	Kind         string `json:"kind"`
	Secret       string `json:"secret"`
	CreatedCount int64  `json:"created_count,omitempty"`
}

type client struct {
	endpoint string
	stubborn bool
}

func (c *client) create(ctx context.Context, wanted thing) (thing, error) {
	return c.exchange(ctx, http.MethodPost, "/things", &wanted)
}

func (c *client) read(ctx context.Context, id string) (thing, error) {
	return c.exchange(ctx, http.MethodGet, "/things/"+url.PathEscape(id), nil)
}

func (c *client) update(ctx context.Context, id string, wanted thing) (thing, error) {
	return c.exchange(ctx, http.MethodPut, "/things/"+url.PathEscape(id), &wanted)
}

func (c *client) remove(ctx context.Context, id string) error {
	_, err := c.exchange(ctx, http.MethodDelete, "/things/"+url.PathEscape(id), nil)
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

func (c *client) count(ctx context.Context, name string) (int64, error) {
	found, err := c.exchange(ctx, http.MethodGet, "/counts/"+url.PathEscape(name), nil)
	return found.CreatedCount, err
}

func (c *client) exchange(ctx context.Context, method, path string, body *thing) (thing, error) {
	if c.stubborn {
		ctx = context.WithoutCancel(ctx)
	}
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return thing{}, err
		}
		payload = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.endpoint+path, payload)
	if err != nil {
		return thing{}, err
	}
	// A connection of its own for each call: net/http repeats an idempotent request whose kept connection was closed.
	req.Close = true
	req.Header.Set("X-Probe-Pid", strconv.Itoa(os.Getpid()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return thing{}, err
	}
	defer resp.Body.Close()
	if how := resp.Header.Get("X-Probe-Freeze"); how != "" {
		c.freeze(how)
	}
	return decode(resp)
}

func decode(resp *http.Response) (thing, error) {
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return thing{}, err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return thing{}, errGone
	case resp.StatusCode >= 300:
		return thing{}, fmt.Errorf("the server answered %d: %s", resp.StatusCode, bytes.TrimSpace(text))
	case len(text) == 0:
		return thing{}, nil
	}
	var found thing
	return found, json.Unmarshal(text, &found)
}

// freeze makes this process stop answering: `stop` stops the whole process, `hang` only the call, which no cancellation
// reaches. The server is told before, so that a test knows.
func (c *client) freeze(how string) {
	req, err := http.NewRequest(http.MethodPost, c.endpoint+"/frozen/"+how, nil)
	if err == nil {
		req.Close = true
		req.Header.Set("X-Probe-Pid", strconv.Itoa(os.Getpid()))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}
	if how == "stop" {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
	select {}
}
