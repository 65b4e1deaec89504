package franz_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-streams/tidemark/internal/testbroker"
	"github.com/tidemark-streams/tidemark/kafka"
	"github.com/tidemark-streams/tidemark/kafka/franz"
)

// describe opens an admin client and asks for a topic.
func describe(t *testing.T, s kafka.Settings, within time.Duration) error {
	t.Helper()
	a, err := franz.Client{}.NewAdmin(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	defer func() { _ = a.Close(ctx) }()
	_, err = a.Topics(ctx, "t")
	return err
}

func TestSASL(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			// the suite's own helpers do not authenticate, so nothing of them is used here
			c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "user", "secret"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s := testbroker.Broker{Addrs: c.ListenAddrs()}.Settings()
			s.SASL = kafka.SASL{Mechanism: mechanism, Username: "user", Password: "secret"}
			if err := describe(t, s, 10*time.Second); err != nil {
				t.Errorf("with the right password: %v", err)
			}
			s.SASL.Password = "wrong"
			if err := describe(t, s, time.Second); !kafka.IsClass(err, kafka.ClassUnauthorized) {
				t.Errorf("with a wrong password: %v", err)
			}
		})
	}
	s := kafka.Settings{Brokers: []string{"127.0.0.1:1"}, SASL: kafka.SASL{Mechanism: "NTLM"}}
	if err := describe(t, s, time.Second); !kafka.IsClass(err, kafka.ClassInvalid) {
		t.Errorf("an unknown mechanism: %v", err)
	}
}

func TestTLS(t *testing.T) {
	server, roots := certificate(t)
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(server))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := testbroker.Broker{Addrs: c.ListenAddrs()}.Settings()
	s.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if err := describe(t, s, 10*time.Second); err != nil {
		t.Errorf("with the broker's authority: %v", err)
	}
	s.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if err := describe(t, s, time.Second); !kafka.IsClass(err, kafka.ClassUnreachable) {
		t.Errorf("with another authority: class %s, %v", kafka.ClassOf(err), err)
	}
}

// certificate makes a certificate for 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, roots
}

func TestSettingsAreChecked(t *testing.T) {
	s := kafka.Settings{Brokers: []string{"127.0.0.1:1"}, Compression: "rar"}
	if _, err := (franz.Client{}).NewProducer(s, kafka.ProducerConfig{}); !kafka.IsClass(err, kafka.ClassInvalid) {
		t.Errorf("an unknown compression: %v", err)
	}
}
