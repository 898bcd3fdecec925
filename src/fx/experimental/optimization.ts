// fuse: folds batch norm into the convolution or linear layer before it, for inference. It reaches tensors only through their own methods.
import { ArgumentError } from '../../errors/index.ts'
import { Module, cloneModule } from '../../module/index.ts'
import { LEAF_MODULE } from '../../protocol/index.ts'
import { GraphModule } from '../graphModule.ts'
import type { Node } from '../node.ts'
import { symbolicTrace } from '../symbolicTrace.ts'

/** The operations on tensors that folding takes. */
interface Foldable {
  readonly shape: readonly number[]
  readonly dtype: string
  to(dtype: string): Foldable
  add(other: Foldable | number): Foldable
  sub(other: Foldable): Foldable
  mul(other: Foldable): Foldable
  rsqrt(): Foldable
  reshape(shape: readonly number[]): Foldable
  detach(): Foldable
  asParameter(requiresGrad: boolean): Foldable
}

interface Layer extends Module {
  weight: Foldable
  bias: Foldable | null
}

interface BatchNorm extends Module {
  readonly weight: Foldable | null
  readonly bias: Foldable | null
  readonly runningMean: Foldable | null
  readonly runningVar: Foldable | null
  readonly eps: number
}

/**
 * Recognised by what they hold: class names do not survive minifiers. Only the library's own layers count (their forward is known), not subclasses
 * that may do something else.
 */
const isLayer = (module: unknown): module is Layer =>
  isOwn(module) && 'weight' in module && 'bias' in module && (('kernelSize' in module && 'groups' in module) || 'inFeatures' in module)
const isBatchNorm = (module: unknown): module is BatchNorm => isOwn(module) && 'runningMean' in module && 'numFeatures' in module
const isOwn = (module: unknown): module is Module => module instanceof Module && (module as { [LEAF_MODULE]?: boolean })[LEAF_MODULE] === true

/**
 * Folds batch norms into the layers before them; the module must be in eval mode. Returns a GraphModule; the model is not changed.
 * A pair is left alone when the layer's result is used elsewhere too, or the norm keeps no running statistics.
 * PyTorch's torch.fx.experimental.optimization.fuse.
 */
export function fuse(model: Module): GraphModule {
  if (model.training)
    throw new ArgumentError('fuse: the model is in training mode, where batch norm uses the statistics of each batch; call model.eval() first.')
  const traced = model instanceof GraphModule ? model.deepCopy({ shareTensors: true }) : symbolicTrace(model)
  for (const node of traced.graph.findNodes({ op: 'call_module' })) {
    const [input] = node.args
    const before = node.allInputNodes[0]
    if (before === undefined || before !== input || before.op !== 'call_module' || before.users.size > 1) continue
    const layer = traced.attribute(before.target as string)
    const norm = traced.attribute(node.target as string)
    if (!isLayer(layer) || !isBatchNorm(norm) || norm.runningMean === null || norm.runningVar === null) continue
    // A layer that is called twice has one weight for both calls.
    if (callsOf(traced, before.target as string).length > 1 || callsOf(traced, node.target as string).length > 1) continue
    traced.addSubmodule(before.target as string, folded(layer, norm))
    node.replaceAllUsesWith(before)
    traced.graph.eraseNode(node)
  }
  traced.deleteAllUnusedSubmodules()
  traced.graph.lint()
  traced.recompile()
  return traced
}

const callsOf = (gm: GraphModule, path: string): Node[] => gm.graph.findNodes({ op: 'call_module', target: path })

/** A copy of the layer with the norm's scale and shift in its weight and bias. */
function folded(layer: Layer, norm: BatchNorm): Layer {
  const copy = cloneModule(layer, (t) => t)
  const mean = (norm.runningMean as Foldable).detach()
  const scale = (norm.runningVar as Foldable).detach().add(norm.eps).rsqrt()
  const gain = norm.weight === null ? scale : norm.weight.detach().mul(scale)
  const weight = layer.weight.detach()
  const shape = [weight.shape[0] as number, ...weight.shape.slice(1).map(() => 1)]
  const centred = layer.bias === null ? mean.sub(mean).sub(mean) : layer.bias.detach().sub(mean)
  const bias = norm.bias === null ? centred.mul(gain) : centred.mul(gain).add(norm.bias.detach())
  copy.weight = weight.mul(gain.reshape(shape)).to(weight.dtype).asParameter(true)
  copy.bias = bias.to(weight.dtype).asParameter(true)
  return copy
}
