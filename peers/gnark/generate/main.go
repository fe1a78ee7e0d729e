// Writes the operations of each curve from curve.tmpl: gnark-crypto has a package per curve, and calls through Go's generics
// would cost more than a field multiplication takes. The files are not committed; in the folder above:
//
//	go generate && go build
package main

import (
	"bytes"
	"go/format"
	"log"
	"os"
	"text/template"
)

// curve is what the template needs to know of one.
type curve struct {
	Name, Package, Ident string
	// Pairing says that there is a second group and a pairing.
	Pairing bool
	// Cofactor says that not every point of the first curve is in the group.
	Cofactor bool
	// Suite1 and Suite2 name the ways of hashing to the curves.
	Suite1, Suite2 string
}

var curves = []curve{
	{"bn254", "bn254", "bn254", true, false, "BN254G1_XMD:SHA-256_SVDW_RO_", "BN254G2_XMD:SHA-256_SVDW_RO_"},
	{"bls12-381", "bls12-381", "bls12381", true, true, "BLS12381G1_XMD:SHA-256_SSWU_RO_", "BLS12381G2_XMD:SHA-256_SSWU_RO_"},
	{"bls12-377", "bls12-377", "bls12377", true, true, "BLS12377G1_XMD:SHA-256_SSWU_RO_", "BLS12377G2_XMD:SHA-256_SSWU_RO_"},
	{"secp256k1", "secp256k1", "secp256k1", false, false, "secp256k1_XMD:SHA-256_SSWU_RO_", ""},
}

func main() {
	log.SetFlags(0)
	text, err := template.ParseFiles("curve.tmpl")
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range curves {
		var source bytes.Buffer
		if err := text.Execute(&source, c); err != nil {
			log.Fatal(err)
		}
		formatted, err := format.Source(source.Bytes())
		if err != nil {
			log.Fatal(c.Name, ": ", err)
		}
		if err := os.WriteFile("curve_"+c.Ident+".go", formatted, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
