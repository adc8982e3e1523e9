// Follows the config maps of a namespace and prints each event; ends when `last` is added.
// When the connection is lost, it starts again, as the client's own examples do.
import * as k8s from '@kubernetes/client-node';

const [kubeconfig, namespace] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, () =>
  core.listNamespacedConfigMap({ namespace }),
);
const start = () => informer.start().catch(() => setTimeout(start, 100));
const note = (type) => (object) => {
  console.log(JSON.stringify([type, object.metadata.name]));
  if (type === 'add' && object.metadata.name === 'last') {
    console.log(JSON.stringify(['cache', informer.list().map((item) => item.metadata.name).sort()]));
    process.exit(0);
  }
};
for (const type of ['add', 'update', 'delete']) {
  informer.on(type, note(type));
}
informer.on('error', () => setTimeout(start, 100));
start();
