package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// answer is what came of a request, read to its end.
type answer struct {
	*http.Response
	body []byte
}

func do(client *http.Client, req *http.Request) (answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	return answer{resp, body}, errors.Join(err, resp.Body.Close())
}

// show prints an answer as stories keep it: its status, the headers that say more
// than the body, and the body with one member a line. What differs from run to
// run is masked, and so is the directory of the server's data.
func (a answer) show(t *testing.T, dir string) string {
	var out strings.Builder
	fmt.Fprintln(&out, a.Status)
	for _, name := range []string{"Location", "Allow", "Retry-After"} {
		if value := a.Header.Get(name); value != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	media := a.Header.Get("Content-Type")
	expected := "application/json"
	if a.StatusCode >= http.StatusBadRequest {
		expected = "application/problem+json"
		require.Contains(t, string(a.body), fmt.Sprintf(`"requestId":%q`, a.Header.Get("X-Request-Id")))
	}
	if media != expected && len(a.body) > 0 {
		fmt.Fprintln(&out, "Content-Type:", media)
	}
	const long = 8 << 10
	switch {
	case len(a.body) > long:
		fmt.Fprintln(&out, "(a long body)")
	case strings.HasSuffix(media, "json") && !strings.HasSuffix(media, "ndjson"):
		out.WriteString(lines(t, a.body))
	default:
		out.Write(a.body)
	}
	return mask(strings.ReplaceAll(out.String(), dir, "DIR"))
}

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"requestId":"[0-9a-f]{16}"`), `"requestId":"ID"`},
	{regexp.MustCompile(`"committedAt":"[0-9]{4}-[0-9-]{5}T[0-9:.]+Z"`), `"committedAt":"TIME"`},
	{regexp.MustCompile(`has [0-9]+ bytes free`), `has N bytes free`},
	{regexp.MustCompile(`"entries":([0-9]+),"bytes":[0-9]+,"hits"`), `"entries":$1,"bytes":N,"hits"`},
}

func mask(text string) string {
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return text
}

// lines prints a JSON object with one member a line, and a member that is an
// array of objects with one element a line. The text of values stays as it is.
func lines(t *testing.T, body []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	next := func() jsontext.Value {
		v, err := dec.ReadValue()
		require.NoError(t, err, "%s", body)
		return v
	}
	if dec.PeekKind() != '{' {
		return string(next()) + "\n"
	}
	_, err := dec.ReadToken()
	require.NoError(t, err)
	var out strings.Builder
	for dec.PeekKind() != '}' {
		out.WriteString(string(next()) + ":")
		if value := next(); bytes.HasPrefix(value, []byte("[{")) {
			out.WriteString("\n" + elements(t, value))
		} else {
			out.WriteString(string(value) + "\n")
		}
	}
	if out.Len() == 0 {
		return "{}\n"
	}
	return out.String()
}

// elements prints the elements of an array, one a line.
func elements(t *testing.T, array jsontext.Value) string {
	var out strings.Builder
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal(array, &all))
	for _, element := range all {
		fmt.Fprintf(&out, "  %s\n", element)
	}
	return out.String()
}
