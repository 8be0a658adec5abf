//! The Python face of the engine: plain data in, plain data out, the GIL released while a load runs.

#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod given;
mod plain;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::{PyInterruptedError, PyOSError, PyPermissionError, PyValueError};
use pyo3::prelude::*;
use velodrome_engine::durations;
use velodrome_engine::engine::{self, EngineError};
#[cfg(target_os = "linux")]
use velodrome_engine::link::{self, LinkError};
use velodrome_engine::results::Percentiles;
use velodrome_engine::spec::LoadSpec;
use velodrome_engine::template::{Occasion, Template};
use velodrome_engine::upstream::{self, UpstreamError};

fn to_python(error: EngineError) -> PyErr {
    match error {
        EngineError::Spec(fault) => PyValueError::new_err(fault.to_string()),
        EngineError::NotAllowed(sentence) => PyPermissionError::new_err(sentence),
        EngineError::System(error) => PyOSError::new_err(error.to_string()),
        EngineError::Late(_) => PyOSError::new_err(error.to_string()),
        EngineError::Ended => PyInterruptedError::new_err(error.to_string()),
    }
}

/// Runs a whole load and returns its result, a `velodrome/load/1` document.
#[pyfunction]
#[pyo3(signature = (spec, body, expect_body, on_event))]
fn load(
    py: Python<'_>,
    spec: &str,
    body: &[u8],
    expect_body: Option<&[u8]>,
    on_event: Option<Py<PyAny>>,
) -> PyResult<String> {
    let spec =
        LoadSpec::from_json(spec).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    // Copies: the bytes objects may not be read while the GIL is released.
    let (body, expected) = (body.to_vec(), expect_body.map(<[u8]>::to_vec));
    let mut raised = None;
    let begin = Arc::new(AtomicU64::new(0));
    let result = py.detach(|| {
        let listener: engine::Listener<'_> = &mut |event| {
            let told = Python::attach(|py| {
                // Ctrl-C is noticed here: Python's own handler runs only when it is given the chance.
                py.check_signals()?;
                match &on_event {
                    Some(listener) => listener.call1(py, (event,))?.extract::<Told>(py).map(Some),
                    None => Ok(None),
                }
            });
            match told {
                Ok(Some(Told::GoOn(go_on))) => go_on != Some(false),
                Ok(Some(Told::Begin(moment))) => {
                    begin.store(moment, Ordering::SeqCst);
                    true
                }
                Ok(None) => true,
                Err(error) => {
                    raised.get_or_insert(error);
                    false
                }
            }
        };
        let expected = expected.as_deref();
        match spec.part {
            None => engine::run(&spec, &body, expected, listener),
            Some(_) => engine::run_part(&spec, &body, expected, &begin, listener),
        }
    });
    match raised {
        Some(error) => Err(error),
        None => {
            let result = result.map_err(to_python)?;
            serde_json::to_string(&result).map_err(|error| PyValueError::new_err(error.to_string()))
        }
    }
}

/// What a listener says to an event.
#[derive(FromPyObject)]
enum Told {
    /// Whether the load goes on; None: it does. First, because `True` is a number, too.
    GoOn(Option<bool>),
    /// When all parts begin.
    Begin(u64),
}

/// When the first `count` requests of a load, or of a part of one, are due: nanoseconds from its beginning.
#[pyfunction]
fn schedule(spec: &str, count: usize) -> PyResult<Vec<u64>> {
    let spec =
        LoadSpec::from_json(spec).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    Ok(engine::schedule(&spec, count))
}

/// A template, filled in for one request.
#[pyfunction]
fn fill(text: &[u8], seed: u64, number: u64) -> PyResult<Vec<u8>> {
    let template = Template::read("the request", text, 0)
        .map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    Ok(template.filled(Occasion {
        seed,
        number,
        index: 0,
    }))
}

/// The sum of histograms, and its percentiles as JSON.
#[pyfunction]
fn sum_of_histograms(
    py: Python<'_>,
    parts: Vec<(String, Option<u64>)>,
) -> PyResult<Option<(String, String)>> {
    py.detach(|| {
        let Some(sum) = durations::sum(&parts).map_err(PyValueError::new_err)? else {
            return Ok(None);
        };
        let percentiles = serde_json::to_string(&Percentiles::of(&sum))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Some((durations::encode(&sum.histogram), percentiles)))
    })
}

/// Plain data as JSON.
#[pyfunction]
fn to_json(plain: &Bound<'_, PyAny>) -> PyResult<String> {
    plain::write(plain)
}

/// JSON as plain data.
#[pyfunction]
fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    plain::read(py, text)
}

/// The simulated third party: binds and starts its threads when made.
#[pyclass(module = "velodrome._native")]
struct Upstream(upstream::Upstream);

#[pymethods]
impl Upstream {
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        py.detach(|| upstream::Upstream::start(spec))
            .map(Upstream)
            .map_err(|error| match error {
                UpstreamError::Spec(_) => PyValueError::new_err(error.to_string()),
                UpstreamError::Listen { .. } | UpstreamError::System(_) => {
                    PyOSError::new_err(error.to_string())
                }
            })
    }

    #[getter]
    fn port(&self) -> u16 {
        self.0.port()
    }

    fn facts(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.facts())
    }

    fn stop(&mut self, py: Python<'_>) -> String {
        py.detach(|| self.0.stop())
    }
}

/// The relay between two networks: takes the TUN devices over and relays when made.
#[cfg(target_os = "linux")]
#[pyclass(module = "velodrome._native")]
struct Link(link::Link);

#[cfg(target_os = "linux")]
#[pymethods]
impl Link {
    #[new]
    fn new(spec: &str, client: i32, server: i32) -> PyResult<Self> {
        given::devices(client, server)
            .map_err(LinkError::from)
            .and_then(|devices| link::Link::start(spec, devices))
            .map(Link)
            .map_err(|error| match error {
                LinkError::Spec(_) => PyValueError::new_err(error.to_string()),
                LinkError::System(_) => PyOSError::new_err(error.to_string()),
            })
    }

    fn facts(&mut self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.facts())
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

/// The whole boundary; `_native.pyi` describes it.
/// A panic reaches Python as an exception, and the command line says what it means: the lines the standard library would
/// print before that say it twice. Who looks for the place of a fault sets RUST_BACKTRACE and gets them.
fn be_quiet_in_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    be_quiet_in_panics();
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("DEBUG", cfg!(debug_assertions))?;
    module.add_class::<Upstream>()?;
    #[cfg(target_os = "linux")]
    module.add_class::<Link>()?;
    module.add_function(wrap_pyfunction!(to_json, module)?)?;
    module.add_function(wrap_pyfunction!(from_json, module)?)?;
    module.add_function(wrap_pyfunction!(schedule, module)?)?;
    module.add_function(wrap_pyfunction!(fill, module)?)?;
    module.add_function(wrap_pyfunction!(sum_of_histograms, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)
}
