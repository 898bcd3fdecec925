// fuse: folds batch norms into the convolution or linear layer before them, for inference. This room knows no tensors, so it uses only their methods.
import { checkArgument, checkCount, checkOptions, isModule, isObject } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module, cloneModule, foldNorm, isLibraryLayer } from '../../module/index.ts'
import type { Foldable as FoldableTensor, NormState } from '../../module/index.ts'
import { replaced } from '../../pipeline/index.ts'
import type { Pass } from '../../pipeline/index.ts'
import { applyRewrites, nodeRewrite } from '../passes/each/rewrites.ts'
import type { GraphRewrite } from '../passes/each/rewrites.ts'
import { GraphModule } from '../run/graphModule.ts'
import { knownValue } from '../graph/nodeValue.ts'
import { symbolicTrace } from '../trace/symbolicTrace.ts'

/** What folding needs of tensors. */
interface Foldable extends FoldableTensor<Foldable, string> {
  detach(): Foldable
  asParameter(requiresGrad: boolean): Foldable
}

/** A convolution or linear layer. */
interface Layer extends Module {
  weight: Foldable
  bias: Foldable | null
}

/** A batch norm that keeps running statistics. */
interface BatchNorm extends Module, NormState<Foldable> {}

// Layers are recognised by their attributes, because minifiers change class names. Subclasses are excluded: their forward may do something else. So are transposed
// convolutions, whose weight has the output channels in its second dimension, group by group.
const isLayer = (module: unknown): module is Layer =>
  isOwn(module) &&
  'weight' in module &&
  'bias' in module &&
  (('kernelSize' in module && 'groups' in module && !('outputPadding' in module)) || 'inFeatures' in module)
const isBatchNorm = (module: unknown): module is BatchNorm =>
  isOwn(module) &&
  'runningMean' in module &&
  'runningVar' in module &&
  'numFeatures' in module &&
  module.runningMean !== null &&
  module.runningVar !== null
const isOwn = (module: unknown): module is Module => module instanceof Module && isLibraryLayer(module)

/** A batch norm into the convolution or linear layer before it: one rewrite of the list that {@link fuse} and optimizeForInference apply. */
export const batchNormRewrite: GraphRewrite = /* @__PURE__ */ nodeRewrite({
  name: 'batch norm into the layer before it',
  what: 'The scale and the shift of a batch norm become part of the weight and the bias of the convolution or linear layer whose result it takes.',
  match: ({ gm, node }) => {
    if (node.op !== 'call_module') return null
    const before = node.allInputNodes[0]
    if (before === undefined || before !== node.args[0] || before.op !== 'call_module') return null
    const [layer, norm] = [gm.attribute(before.target), gm.attribute(node.target)]
    return isLayer(layer) && isBatchNorm(norm) ? { before, layer, norm, normPath: node.target } : null
  },
  condition: ({ before, layer, norm, normPath }, { gm }) =>
    !norm.training &&
    before.users.size === 1 &&
    layer.weight.shape[0] === norm.runningMean.shape[0] &&
    // The norm is of dimension 1. The features of a linear layer are the last dimension, which is another one unless the result is a matrix.
    (!('inFeatures' in layer) || isMatrix(knownValue(before))) &&
    // A layer that is called twice has one weight for both calls.
    callsOf(gm, before.target) === 1 &&
    callsOf(gm, normPath) === 1,
  replace: ({ before, layer, norm }, { gm }) => {
    gm.addSubmodule(before.target, folded(layer, norm))
    return before
  },
})

/** Options of {@link fuse}. */
export interface FuseOptions {
  /** Change the model, which must be a GraphModule, instead of a copy. Default false. */
  readonly inplace?: boolean
}

/**
 * Folds batch norms into the layers before them. Returns a GraphModule; the model does not change, unless it is a GraphModule and `inplace` is set. A norm is kept if
 * the layer's result has other users, or if it has no running statistics. After a linear layer it is folded only where the graph says that the result is a matrix (run
 * ShapeProp first): of anything else the norm takes dimension 1, and the layer the last one. PyTorch's torch.fx.experimental.optimization.fuse, which folds into
 * convolutions only; a GraphModule is never traced again, as with its no_trace.
 * @throws ArgumentError for a model in training mode, and for `inplace` with a model that is not a GraphModule.
 */
export function fuse(model: Module, options: FuseOptions = {}): GraphModule {
  checkCount('fuse', arguments, 2)
  checkArgument(isModule(model), 'fuse', 'model', 'a Module', model)
  checkOptions('fuse', options, { inplace: 'boolean' })
  const { inplace = false } = options
  if (inplace && !(model instanceof GraphModule))
    throw new ArgumentError('fuse: options.inplace needs a GraphModule; pass symbolicTrace(model), or leave the option out.')
  if (model.training)
    throw new ArgumentError('fuse: the model is in training mode, where batch norm uses the statistics of each batch; call model.eval() first.')
  const traced = !(model instanceof GraphModule) ? symbolicTrace(model) : inplace ? model : model.deepCopy({ shareTensors: true })
  applyRewrites(traced, [batchNormRewrite])
  return traced
}

/** {@link fuse} as a pass. It changes nothing if there is no batch norm to fold. */
export const foldBatchNorms: Pass<GraphModule> = {
  name: 'foldBatchNorms',
  run: (gm) => {
    const fused = fuse(gm)
    return fused.graph.size < gm.graph.size ? replaced(fused) : false
  },
}

const isMatrix = (spec: unknown): boolean => isObject(spec) && 'shape' in spec && Array.isArray(spec.shape) && spec.shape.length === 2

const callsOf = (gm: GraphModule, path: string): number => gm.graph.findNodes({ op: 'call_module', target: path }).length

/** A copy of the layer whose weight and bias include the norm's scale and shift. */
function folded(layer: Layer, norm: BatchNorm): Layer {
  const copy = cloneModule(layer, (t) => t)
  const detached = (t: Foldable | null): Foldable | null => t?.detach() ?? null
  const state = {
    runningMean: norm.runningMean.detach(),
    runningVar: norm.runningVar.detach(),
    eps: norm.eps,
    weight: detached(norm.weight),
    bias: detached(norm.bias),
  }
  const [weight, bias] = foldNorm<string, Foldable>(layer.weight.detach(), detached(layer.bias), state)
  copy.weight = weight.asParameter(true)
  copy.bias = bias.asParameter(true)
  return copy
}
