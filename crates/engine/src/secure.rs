//! Whom TLS trusts, and what it offers.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::place::Place;
use crate::spec::{LoadSpec, SpecError, TlsSpec, Version};

/// How connections are encrypted.
#[derive(Clone, Debug)]
pub struct Secure {
    /// Whom to trust and what to offer.
    pub config: Arc<ClientConfig>,
    /// Whom the certificate must name.
    pub name: ServerName<'static>,
    /// What is spoken, as ALPN names it.
    pub spoken: &'static [u8],
}

impl Secure {
    /// Reads what the spec says of trust.
    pub fn new(spec: &LoadSpec, place: &Place) -> Result<Secure, SpecError> {
        let provider = Arc::new(ring::default_provider());
        let versions: &[&SupportedProtocolVersion] = match spec.tls.minimum {
            Version::Tls12 => &[&TLS12, &TLS13],
            Version::Tls13 => &[&TLS13],
        };
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(|error| SpecError(format!("TLS: {error}")))?;
        let verifier = verifier(spec, provider)?;
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match own(&spec.tls)? {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| {
                SpecError(format!("tls: cert and key do not go together: {error}"))
            })?,
        };
        // A new connection stands for a new client, and that has nothing to resume: each shakes hands in full. The store
        // would also be one for all threads, with a lock that each handshake takes.
        config.resumption = Resumption::disabled();
        let spoken: &[u8] = if place.scheme.grpc || spec.http2 {
            b"h2"
        } else {
            b"http/1.1"
        };
        config.alpn_protocols = match &spec.tls.alpn {
            None => vec![spoken.to_vec()],
            Some(names) => names.iter().map(|name| name.clone().into_bytes()).collect(),
        };
        let host = spec.tls.sni.as_deref().unwrap_or(place.host());
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| SpecError(format!("url: no certificate can name {host:?}")))?;
        Ok(Secure {
            config: Arc::new(config),
            name,
            spoken,
        })
    }

    /// A copy for one thread: each connection counts the uses of its configuration, and a count that all share would
    /// travel between CPUs with each of them.
    #[must_use]
    pub fn own(&self) -> Secure {
        Secure {
            config: Arc::new(ClientConfig::clone(&self.config)),
            ..self.clone()
        }
    }
}

fn verifier(
    spec: &LoadSpec,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, SpecError> {
    let whom = if spec.insecure {
        Whom::Anybody
    } else {
        let named = match spec.cacert.as_deref() {
            None => None,
            Some(file) => Some(certificates("cacert", file)?),
        };
        Whom::Named {
            by_authority: by_authority(named.as_deref(), provider.clone())?,
            named: named.unwrap_or_default(),
        }
    };
    Ok(Arc::new(Trust { provider, whom }))
}

/// This side's own certificate, where the server wants one, and its key.
type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own(tls: &TlsSpec) -> Result<Option<Own>, SpecError> {
    let Some(cert) = tls.cert.as_deref() else {
        return Ok(None);
    };
    let chain = certificates("tls: cert", cert)?;
    let file = tls.key.as_deref().unwrap_or(cert);
    let key = PrivateKeyDer::from_pem_file(file).map_err(|error| {
        SpecError(format!(
            "tls: key: {}: it has no key in it (PEM): {error}",
            file.display()
        ))
    })?;
    Ok(Some((chain, key)))
}

/// The certificates in a file; `field` is what to call it in a fault.
fn certificates(field: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, SpecError> {
    let fault = |why: String| SpecError(format!("{field}: {}: {why}", file.display()));
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| fault(format!("cannot be read: {error}")))?;
    match certificates.is_empty() {
        true => Err(fault("it has no certificate in it (PEM)".into())),
        false => Ok(certificates),
    }
}

/// Trusts what the authorities named have issued, or those the system trusts. None: there is no authority at all.
fn by_authority(
    named: Option<&[CertificateDer<'static>]>,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, SpecError> {
    let mut roots = RootCertStore::empty();
    match named {
        Some(named) => roots.add_parsable_certificates(named.iter().cloned()),
        None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
    };
    if roots.is_empty() {
        return Ok(None);
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map(Some)
        .map_err(|error| SpecError(format!("cacert: {error}")))
}

/// Whom to trust. Signatures are checked whoever that is: the handshake is a whole one.
#[derive(Debug)]
struct Trust {
    provider: Arc<CryptoProvider>,
    whom: Whom,
}

#[derive(Debug)]
enum Whom {
    Anybody,
    /// What a trusted authority has issued, and a certificate that was itself named: the self-signed one of a test
    /// server is an authority's own by its form, and no authority vouches for itself (RFC 5280, section 4.2.1.9).
    Named {
        named: Vec<CertificateDer<'static>>,
        /// None: no authority is trusted.
        by_authority: Option<Arc<WebPkiServerVerifier>>,
    },
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Whom::Named {
            named,
            by_authority,
        } = &self.whom
        else {
            return Ok(ServerCertVerified::assertion());
        };
        if named.contains(certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match by_authority {
            Some(verifier) => verifier.verify_server_cert(certificate, between, name, ocsp, now),
            None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
