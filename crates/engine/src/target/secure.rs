//! Whom TLS trusts, and what it offers.

mod verifiers;

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::Place;
use crate::spec::{LoadSpec, SpecError};
use verifiers::{Anybody, Named};

/// How connections are encrypted.
#[derive(Clone, Debug)]
pub struct Secure {
    /// Whom to trust and what to offer.
    pub config: Arc<ClientConfig>,
    /// Whom the certificate must name.
    pub name: ServerName<'static>,
}

impl Secure {
    /// Reads what the spec says of trust.
    pub fn new(spec: &LoadSpec, place: &Place) -> Result<Secure, SpecError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| SpecError(format!("TLS: {error}")))?;
        let verifier: Arc<dyn ServerCertVerifier> = match spec.insecure {
            true => Arc::new(Anybody(provider)),
            false => {
                let named = certificates(spec.cacert.as_deref())?;
                let by_authority = by_authority(named.as_deref(), provider)?;
                let named = named.unwrap_or_default();
                Arc::new(Named {
                    named,
                    by_authority,
                })
            }
        };
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let offered: &[u8] = if place.scheme.grpc {
            b"h2"
        } else {
            b"http/1.1"
        };
        config.alpn_protocols = vec![offered.to_vec()];
        let name = ServerName::try_from(place.host().to_owned())
            .map_err(|_| SpecError(format!("url: no certificate can name {:?}", place.host())))?;
        Ok(Secure {
            config: Arc::new(config),
            name,
        })
    }
}

/// The certificates in a file.
fn certificates(file: Option<&Path>) -> Result<Option<Vec<CertificateDer<'static>>>, SpecError> {
    let Some(file) = file else { return Ok(None) };
    let fault = |why: String| SpecError(format!("cacert: {}: {why}", file.display()));
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| fault(format!("cannot be read: {error}")))?;
    match certificates.is_empty() {
        true => Err(fault("it has no certificate in it (PEM)".into())),
        false => Ok(Some(certificates)),
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
