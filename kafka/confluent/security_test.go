//go:build cgo

package confluent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/kafkatest"
)

// certificate makes a key and a certificate that signs itself, for the loopback address.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{{127, 0, 0, 1}}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestTLSAndSASLAgainstABroker(t *testing.T) {
	t.Parallel()
	server, root := certificate(t)
	mine, _ := certificate(t)
	b := kafkatest.Embedded(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAnyClientCert}),
		kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "me", "secret"))
	s := b.Settings()
	s.TLS = &tls.Config{Certificates: []tls.Certificate{mine}}
	s.SASL = kafka.SASL{Mechanism: "SCRAM-SHA-256", Username: "me", Password: "secret"}
	for name, client := range map[string]Client{
		"own root":      {Config: map[string]any{"ssl.ca.pem": root}},
		"not verifying": {},
	} {
		s := s
		if name == "not verifying" {
			s.TLS = s.TLS.Clone()
			s.TLS.InsecureSkipVerify = true
		}
		a, err := client.NewAdmin(s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := a.Topics(within(t, 10*time.Second), "x"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		closed(t, a)
	}
	s.SASL.Password = "wrong"
	s.TLS.InsecureSkipVerify = true
	a, err := Client{}.NewAdmin(s)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Topics(within(t, 2*time.Second), "x")
	if err == nil || !strings.Contains(err.Error(), "uthentication") {
		t.Errorf("with a wrong password: %v", err)
	}
	closed(t, a)
}

func TestTLSRefusesWhatOpenSSLCannotBeTold(t *testing.T) {
	for field, c := range map[string]*tls.Config{
		"RootCAs":               {RootCAs: x509.NewCertPool()},
		"ServerName":            {ServerName: "x"},
		"VerifyPeerCertificate": {VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return nil }},
		"MinVersion":            {MinVersion: tls.VersionTLS13},
		"more":                  {Certificates: make([]tls.Certificate, 2)},
	} {
		_, err := Client{}.NewAdmin(kafka.Settings{Brokers: []string{"127.0.0.1:1"}, TLS: c})
		if !kafka.IsClass(err, kafka.ClassInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestUnknownSASLMechanism(t *testing.T) {
	conf := ck.ConfigMap{}
	err := secure(conf, kafka.Settings{SASL: kafka.SASL{Mechanism: "GSSAPI"}})
	if err == nil || !strings.Contains(err.Error(), `"GSSAPI"`) {
		t.Errorf("got %v", err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func closed(t *testing.T, c kafka.Closer) {
	t.Helper()
	if err := c.Close(within(t, 10*time.Second)); err != nil {
		t.Errorf("close: %v", err)
	}
}
