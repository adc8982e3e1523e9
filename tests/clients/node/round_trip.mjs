// Creates, lists, patches, watches and deletes; prints what it saw as one line of JSON.
import * as k8s from '@kubernetes/client-node';

const [kubeconfig, namespace] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const resources = config.makeApiClient(k8s.ResourceV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const as = (strategy) => k8s.setHeaderOptions('Content-Type', strategy);
const seen = {};

const version = await config.makeApiClient(k8s.VersionApi).getCode();
seen.version = `${version.major}.${version.minor}`;

const before = await core.listNamespacedConfigMap({ namespace });
await core.createNamespacedConfigMap({
  namespace,
  body: { metadata: { name: 'a', labels: { app: 'x' } }, data: { k: 'v' } },
});
const patch = (body, strategy) =>
  core.patchNamespacedConfigMap({ namespace, name: 'a', body }, as(strategy));
await patch({ data: { merged: '1' } }, k8s.PatchStrategy.MergePatch);
await patch({ data: { strategic: '2' } }, k8s.PatchStrategy.StrategicMergePatch);
const patched = await patch([{ op: 'remove', path: '/data/k' }], k8s.PatchStrategy.JsonPatch);
seen.data = patched.data;
const listed = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=x', limit: 10 });
seen.listed = listed.items.map((item) => item.metadata.name);
try {
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'a' } } });
} catch (error) {
  seen.conflict = [error.code, JSON.parse(error.body).reason];
}
await core.deleteNamespacedConfigMap({ namespace, name: 'a' });

seen.events = await new Promise((resolve, reject) => {
  const events = [];
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const query = { resourceVersion: before.metadata.resourceVersion, timeoutSeconds: 1 };
  const done = (error) => (error && error.type !== 'aborted' ? reject(error) : resolve(events));
  new k8s.Watch(config).watch(path, query, (type) => events.push(type), done);
});

const spec = { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu' } }] } };
await resources.createNamespacedResourceClaim({ namespace, body: { metadata: { name: 'c' }, spec } });
const claim = await resources.readNamespacedResourceClaim({ namespace, name: 'c' });
claim.metadata.finalizers = ['example.com/hold'];
const held = await resources.replaceNamespacedResourceClaim({ namespace, name: 'c', body: claim });
seen.claim = [held.spec.devices.requests[0].exactly.allocationMode, held.metadata.finalizers];

await objects.create({
  apiVersion: 'resource.k8s.io/v1beta1',
  kind: 'ResourceClaim',
  metadata: { name: 'd', namespace },
  spec: { devices: { requests: [{ name: 'gpu', deviceClassName: 'gpu' }] } },
});
const typed = await resources.readNamespacedResourceClaim({ namespace, name: 'd' });
seen.converted = typed.spec.devices.requests[0].exactly.deviceClassName;

console.log(JSON.stringify(seen));
