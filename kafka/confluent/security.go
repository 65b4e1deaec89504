//go:build cgo

package confluent

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/tidemark-streams/tidemark/kafka"
)

// secure translates TLS and SASL. OpenSSL does the handshakes here, not crypto/tls, so
// a tls.Config can only be used as far as it can be told to OpenSSL: the rest is refused
// rather than ignored.
func secure(conf ck.ConfigMap, s kafka.Settings) error {
	protocol := "plaintext"
	if s.TLS != nil {
		protocol = "ssl"
		if err := secureTLS(conf, s.TLS); err != nil {
			return err
		}
	}
	if s.SASL.Mechanism != "" {
		protocol = map[string]string{"plaintext": "sasl_plaintext", "ssl": "sasl_ssl"}[protocol]
		switch s.SASL.Mechanism {
		case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		default:
			return fmt.Errorf("unknown Settings.SASL.Mechanism %q: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are known", s.SASL.Mechanism)
		}
		conf["sasl.mechanisms"] = s.SASL.Mechanism
		conf["sasl.username"] = s.SASL.Username
		conf["sasl.password"] = s.SASL.Password
	}
	conf["security.protocol"] = protocol
	return nil
}

func secureTLS(conf ck.ConfigMap, t *tls.Config) error {
	var cannot []string
	for name, set := range map[string]bool{
		"RootCAs (set ssl.ca.location or ssl.ca.pem in confluent.Client.Config)": t.RootCAs != nil,
		"ServerName":            t.ServerName != "",
		"GetClientCertificate":  t.GetClientCertificate != nil,
		"VerifyPeerCertificate": t.VerifyPeerCertificate != nil,
		"VerifyConnection":      t.VerifyConnection != nil,
		"CipherSuites (set ssl.cipher.suites in confluent.Client.Config)": t.CipherSuites != nil,
		"MinVersion above TLS 1.2":                                        t.MinVersion > tls.VersionTLS12,
	} {
		if set {
			cannot = append(cannot, name)
		}
	}
	if len(cannot) > 0 {
		return errors.New("librdkafka cannot use these fields of Settings.TLS: " + strings.Join(cannot, ", "))
	}
	if t.InsecureSkipVerify {
		conf["enable.ssl.certificate.verification"] = false
	}
	switch len(t.Certificates) {
	case 0:
		return nil
	case 1:
	default:
		return errors.New("librdkafka can use one client certificate; Settings.TLS has more")
	}
	chain, key, err := encodePEM(t.Certificates[0])
	if err != nil {
		return fmt.Errorf("encode the client certificate for librdkafka: %w", err)
	}
	conf["ssl.certificate.pem"] = chain
	conf["ssl.key.pem"] = key
	return nil
}

// encodePEM writes a certificate chain and its private key as PEM.
func encodePEM(c tls.Certificate) (chain, key string, err error) {
	var b bytes.Buffer
	for _, der := range c.Certificate {
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return "", "", err
		}
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return "", "", err
	}
	return b.String(), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}
