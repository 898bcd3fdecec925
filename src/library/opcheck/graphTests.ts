// The tests of opcheck that put the operator into graphs: symbolic tracing, makeFx, JSON, and compile with its gradients.
import { makeFx } from '../../aot/index.ts'
import { grad, noGrad } from '../../autograd/index.ts'
import { compile } from '../../dynamo/index.ts'
import { Graph, GraphModule, Proxy, nodeOf } from '../../fx/index.ts'
import { graphToJson } from '../../fx/text/json.ts'
import { graphFromJson } from '../../fx/text/readJson.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { ones } from '../../ops/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { hasBackward } from '../customOp.ts'
import { firstDifference, resultsOf, wantedOf } from './sample.ts'
import type { Sample, Tolerance } from './sample.ts'

/** The results of a call on copies, and the copies, to which the operator may have written. */
function run(
  sample: Sample,
  fn: (tensors: readonly Tensor[]) => unknown,
): { readonly results: readonly Tensor[]; readonly tensors: readonly Tensor[] } {
  const tensors = sample.copies()
  return { results: resultsOf(noGrad(() => fn(tensors))), tensors }
}

/** How running `fn` differs from calling the operator. */
function runDifference(sample: Sample, fn: (tensors: readonly Tensor[]) => unknown, tolerance: Tolerance): string | null {
  const [got, expected] = [run(sample, fn), run(sample, (tensors) => sample.call(tensors))]
  return firstDifference('result', got.results, expected.results, tolerance) ?? firstDifference('tensor', got.tensors, expected.tensors, tolerance)
}

/** Symbolic tracing and makeFx record the call as one node, and the graphs compute the same, also after they were saved as JSON. */
export function testTracing(sample: Sample, tolerance: Tolerance): string | null {
  const graph = new Graph()
  const proxies = sample.tensors.map((_, i) => new Proxy(graph.placeholder(`t${i}`)))
  const called = proxies.length === 0 ? null : sample.call(proxies)
  if (called instanceof Proxy) {
    const node = nodeOf(called)
    if (node.op !== 'call_function' || node.target !== sample.op.fn) return `symbolic tracing recorded ${node.op} of another function`
    graph.output(sample.op.schema.returns.length === 0 ? [] : node)
    const traced = (g: Graph) => (tensors: readonly Tensor[]) => new GraphModule({}, g).call(...tensors)
    const differs = runDifference(sample, traced(graph), tolerance)
    if (differs !== null) return `the symbolically traced graph: ${differs}`
    const loaded = runDifference(sample, traced(graphFromJson(graphToJson(graph), { trust: 'code' })), tolerance)
    if (loaded !== null) return `the graph read from JSON: ${loaded}`
  }
  const gm = makeFx((...tensors: Tensor[]) => sample.call(tensors))(...sample.copies())
  const differs = runDifference(sample, (tensors) => gm.call(...tensors), tolerance)
  return differs === null ? null : `the graph of makeFx: ${differs}`
}

const BACKENDS = ['aot_eager', 'inductor']

/** compile, without a graph break, gives the same results, writes and gradients. */
export function testAotDispatch(sample: Sample, tolerance: Tolerance): string | null {
  for (const backend of BACKENDS) {
    const compiled = compile((...tensors: Tensor[]) => sample.call(tensors), { backend, fullgraph: true })
    const differs =
      runDifference(sample, (tensors) => compiled(...tensors), tolerance) ?? gradientDifference(sample, (t) => compiled(...t), tolerance)
    if (differs !== null) return `compiled with '${backend}': ${differs}`
  }
  return null
}

/** How the gradients of `fn` differ from the operator's. */
function gradientDifference(sample: Sample, fn: (tensors: readonly Tensor[]) => unknown, tolerance: Tolerance): string | null {
  if (!hasBackward(sample.op) || sample.op.tags.has('mutates') || wantedOf(sample.tensors).length === 0) return null
  const gradients = (call: (tensors: readonly Tensor[]) => unknown): (Tensor | null)[] => {
    const tensors = sample.copies()
    const results = resultsOf(call(tensors)).filter((result) => dtypeInfo[result.dtype].floating && result.requiresGrad)
    if (results.length === 0) return []
    const gradOutputs = results.map((result) => ones(result.shape, { dtype: result.dtype }))
    return grad(results, wantedOf(tensors), { gradOutputs, allowUnused: true })
  }
  const [got, expected] = [gradients(fn), gradients((tensors) => sample.call(tensors))]
  for (const [i, value] of expected.entries())
    if ((value === null) !== ((got[i] ?? null) === null)) return `gradient ${i} is ${value === null ? 'there' : 'missing'}`
  const there = (list: readonly (Tensor | null)[]): Tensor[] => list.filter((value) => value !== null)
  return firstDifference('gradient', there(got), there(expected), tolerance)
}
