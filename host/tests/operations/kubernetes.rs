//! The manifests of `packaging/kubernetes` against the schemas of Kubernetes, and against what they name: the image,
//! the settings, the unit of systemd, each other. No cluster runs them.

use crate::common::python::{python, site};
use crate::common::repository;
use longhaul_config::server::{self, ServerSettings};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Output;

const FOLDER: &str = "packaging/kubernetes";

/// The schemas and what reads them, in the versions that were tried.
pub const LIST: &str = "packaging/kubernetes/requirements.txt";

/// The patch with what native programs need, applied.
const PATCHED: &str = "patches/native-programs.yaml";

fn check(directory: &Path) -> Output {
    let mut python = python();
    python.arg(repository().join(FOLDER).join("check.py")).arg(directory);
    python.env("PYTHONPATH", site(LIST)).env("PYTHONDONTWRITEBYTECODE", "1");
    python.output().expect("python3 is installed")
}

/// The resources of each file.
fn manifests() -> Value {
    let checked = check(&repository().join(FOLDER));
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    serde_json::from_slice(&checked.stdout).expect("JSON")
}

#[track_caller]
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value:#}"))
}

#[track_caller]
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value:#}"))
}

#[track_caller]
fn find<'a>(manifests: &'a Value, file: &str, kind: &str, name: &str) -> &'a Value {
    let is_it = |resource: &&Value| resource["kind"] == kind && resource["metadata"]["name"] == name;
    list(&manifests[file]).iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name} in {file}"))
}

/// The pod of a StatefulSet.
#[track_caller]
fn pod<'a>(manifests: &'a Value, file: &str, name: &str) -> &'a Value {
    &find(manifests, file, "StatefulSet", name)["spec"]["template"]["spec"]
}

/// All containers of a pod.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers"].into_iter().flat_map(move |kind| pod[kind].as_array().into_iter().flatten())
}

#[test]
fn the_manifests_fit_the_schemas_and_a_slip_in_one_is_one_line_with_its_place() {
    assert_eq!(manifests().as_object().map(serde_json::Map::len), Some(3));
    let good = fs::read_to_string(repository().join(FOLDER).join("longhaul.yaml")).expect("there");
    let folder = tempfile::tempdir().expect("a directory");
    let refuses = |from: &str, to: &str, words: &[&str]| {
        assert!(good.contains(from), "{from}");
        fs::write(folder.path().join("longhaul.yaml"), good.replace(from, to)).expect("ours");
        let checked = check(folder.path());
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(!checked.status.success() && said.lines().count() == 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    refuses("readOnlyRootFilesystem", "readOnlyRootFileSystem", &["StatefulSet longhaul/longhaul", "securityContext"]);
    refuses("replicas: 3", "replicas: three", &["spec.replicas", "three"]);
    refuses("serviceName:", "serviceNames:", &[": spec: ", "serviceName"]);
    refuses("policy/v1\n", "policy/v2\n", &["PodDisruptionBudget", "policy/v2"]);
    refuses("  replicas: 3\n", "  replicas: 3\n  replicas: 3\n", &["`replicas` stands twice"]);
    refuses("    [worker]\n", "    [worker\n", &["ConfigMap longhaul/longhaul", "server.toml: ", "line "]);
    refuses("    [store]\n", "    [stores]\n", &["ConfigMap longhaul/longhaul", "[worker] needs", "[store]"]);
}

#[test]
fn the_settings_of_the_servers_are_what_the_program_reads_and_lead_to_the_database() {
    let manifests = manifests();
    let settings = text(&find(&manifests, "longhaul.yaml", "ConfigMap", "longhaul")["data"]["server.toml"]);
    let folder = tempfile::tempdir().expect("a directory");
    fs::write(folder.path().join(server::FILE), settings).expect("ours");
    let store = server::store(folder.path()).expect("in order").expect("a database");
    let database = find(&manifests, "postgres.yaml", "Service", "postgres");
    assert_eq!(database["metadata"]["namespace"], "longhaul");
    assert!(store.url.contains("@postgres/"), "{}", store.url);
    let variable = store.password_env.expect("a password");
    let secret = |file: &str, name: &str, variable: &str| {
        let environment = list(&pod(&manifests, file, name)["containers"][0]["env"]);
        let found = environment.iter().find(|one| one["name"] == variable).expect("the variable is set");
        found["valueFrom"]["secretKeyRef"].clone()
    };
    let password = secret("longhaul.yaml", "longhaul", &variable);
    assert_eq!(password, secret("postgres.yaml", "postgres", "POSTGRES_PASSWORD"), "both sides have the password");
    assert_eq!(password["name"], "longhaul-database");

    let listen = "0.0.0.0:7717".parse().expect("an address");
    let settings = ServerSettings { listen, ..ServerSettings::read(folder.path()).expect("in order") };
    settings.check().expect("in order");
    assert!(settings.worker().is_some(), "all servers work on runs");
    for name in ["longhaul", "longhaul.longhaul.svc", "longhaul.longhaul.svc.cluster.local", "localhost"] {
        assert!(settings.answers_to(name), "{name}");
    }
}

#[test]
fn the_servers_are_those_of_the_image_and_end_as_the_unit_of_systemd_has_them_end() {
    let manifests = manifests();
    let file = |name: &str| fs::read_to_string(repository().join("packaging").join(name)).expect("there");
    let (image, unit, compose) = (file("Containerfile"), file("longhaul.service"), file("compose.yml"));
    let spec = &find(&manifests, "longhaul.yaml", "StatefulSet", "longhaul")["spec"];
    let pod = &spec["template"]["spec"];
    let server = &pod["containers"][0];
    assert!(image.contains(&format!("--uid {} ", pod["securityContext"]["runAsUser"])), "the user of the image");
    for container in containers(pod) {
        let name = text(&container["image"]);
        assert!(compose.contains(&format!("  image: {name}\n")), "one image everywhere: {name}");
    }
    let port = &server["ports"][0]["containerPort"];
    assert!(image.contains(&format!("\"0.0.0.0:{port}\"")) && image.contains(&format!("EXPOSE {port}\n")));
    let place = text(&list(&server["volumeMounts"])[0]["mountPath"]);
    for variable in ["LONGHAUL_HOME", "LONGHAUL_CACHE"] {
        assert!(image.contains(&format!("{variable}={place}/")), "{variable} is on the volume");
    }
    assert!(unit.contains(&format!("TimeoutStopSec={}\n", pod["terminationGracePeriodSeconds"])));
    for (probe, path) in [("startupProbe", "/health"), ("livenessProbe", "/health"), ("readinessProbe", "/ready")] {
        let asked = &server[probe]["httpGet"];
        assert_eq!((&asked["path"], &asked["port"]), (&json!(path), &json!("http")), "{probe}");
        assert_eq!(asked["httpHeaders"], json!([{ "name": "Host", "value": "localhost" }]), "{probe}");
    }
    // A standby is not ready, and nothing may wait for that.
    assert_eq!(
        (&spec["podManagementPolicy"], &spec["updateStrategy"]["type"]),
        (&json!("Parallel"), &json!("OnDelete"))
    );
    assert!(spec["replicas"].as_u64().is_some_and(|servers| servers > 2), "one of them may be away");
}

#[test]
fn each_name_in_the_manifests_is_that_of_something_there() {
    let manifests = manifests();
    for (file, name) in [("longhaul.yaml", "longhaul"), ("postgres.yaml", "postgres")] {
        let spec = &find(&manifests, file, "StatefulSet", name)["spec"];
        let (labels, pod) = (&spec["template"]["metadata"]["labels"], &spec["template"]["spec"]);
        find(&manifests, file, "Service", text(&spec["serviceName"]));
        assert_eq!(&spec["selector"]["matchLabels"], labels);
        let ports: Vec<&Value> = list(&pod["containers"][0]["ports"]).iter().map(|port| &port["name"]).collect();
        for resource in list(&manifests[file]) {
            assert_eq!(resource["metadata"]["namespace"], "longhaul", "{resource:#}");
            match text(&resource["kind"]) {
                "Service" => {
                    assert_eq!(&resource["spec"]["selector"], labels);
                    assert!(ports.contains(&&resource["spec"]["ports"][0]["targetPort"]), "{resource:#}");
                }
                "PodDisruptionBudget" => assert_eq!(&resource["spec"]["selector"]["matchLabels"], labels),
                _ => {}
            }
        }
        let claims = list(&spec["volumeClaimTemplates"]).iter().map(|claim| &claim["metadata"]["name"]);
        let volumes: Vec<&Value> = list(&pod["volumes"]).iter().map(|volume| &volume["name"]).chain(claims).collect();
        for mount in containers(pod).flat_map(|container| list(&container["volumeMounts"])) {
            assert!(volumes.contains(&&mount["name"]), "{mount:#}");
        }
        for name in list(&pod["volumes"]).iter().filter_map(|volume| volume["configMap"]["name"].as_str()) {
            find(&manifests, file, "ConfigMap", name);
        }
    }
}

#[test]
fn pods_run_as_no_root_and_are_confined_but_for_what_native_programs_need() {
    let manifests = manifests();
    let files = [("longhaul.yaml", "longhaul"), ("postgres.yaml", "postgres"), (PATCHED, "longhaul")];
    for (file, name) in files {
        let pod = pod(&manifests, file, name);
        assert_eq!(pod["automountServiceAccountToken"], false, "{file}");
        assert_eq!(pod["enableServiceLinks"], false, "{file}: variables of Services");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{file}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{file}");
        for container in containers(pod) {
            let confined = &container["securityContext"];
            assert_eq!(confined["allowPrivilegeEscalation"], false, "{file}");
            assert_eq!(confined["readOnlyRootFilesystem"], true, "{file}");
            assert_eq!(confined["capabilities"], json!({ "drop": ["ALL"] }), "{file}");
            let is_open = file == PATCHED && container["name"] == "longhaul";
            for setting in ["procMount", "seccompProfile", "appArmorProfile"] {
                assert_eq!(confined[setting].is_null(), !is_open, "{file}: {setting}");
            }
        }
        // What is open is open in a user namespace of the pod alone.
        assert_eq!(pod["hostUsers"] == false, file == PATCHED, "{file}");
    }
}
