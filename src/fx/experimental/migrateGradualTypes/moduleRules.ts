// The constraints of layers.
import { getAttribute } from '../../../module/index.ts'
import { moduleOf } from '../gradualTypes/layerRules.ts'
import { numberOf } from '../gradualTypes/shapeRules.ts'
import { TensorType } from '../gradualTypes/tensorType.ts'
import { BinConstraintD, BinConstraintT } from './constraint.ts'
import type { Constraint, DVar } from './constraint.ts'
import { CalcConv, CalcMaxPool } from './operatorConstraints.ts'
import type { PerDimension } from './operatorConstraints.ts'
import { opConsistency, opMatching } from './operation.ts'
import {
  MAX_TENSOR_RANK,
  addLayerNormConstraints,
  embeddingConstraints,
  isType,
  linearConstraints,
  newTensor,
  sameShape,
  shapeOf,
  tensorAt,
  unsupported,
} from './ruleParts.ts'
import type { ConstraintRule, RuleInput } from './ruleParts.ts'
import { genNatConstraints } from './util.ts'

const option = (input: RuleInput, name: string): unknown => getAttribute(moduleOf(input.root, input.node), name)
const number = (input: RuleInput, name: string): number => numberOf(moduleOf(input.root, input.node), name)

function pair(input: RuleInput, name: string): PerDimension {
  const value = option(input, name)
  if (typeof value === 'number') return value
  if (name === 'padding' && value === 'valid') return [0, 0]
  const numbers = Array.isArray(value) ? value.filter((item) => typeof item === 'number') : []
  if (numbers.length === 2) return numbers
  throw unsupported(input.node, `${name} '${String(value)}' is not yet implemented`)
}

const equal: ConstraintRule = (input) => {
  const output = newTensor(input)
  return [isType(tensorAt(input), output)]
}

/** The input has rank 4, or is Dyn. */
function matching(input: RuleInput): readonly [constraint: Constraint, sizes: DVar[], natural: readonly Constraint[]] {
  const sizes = input.fresh.sizes(MAX_TENSOR_RANK)
  return [new BinConstraintT(tensorAt(input), TensorType(sizes), opMatching), sizes, genNatConstraints(sizes)]
}

const batchNorm: ConstraintRule = (input) => {
  const output = newTensor(input)
  const [constraint, , natural] = matching(input)
  return [constraint, isType(tensorAt(input), output), ...natural]
}

const adaptivePool: ConstraintRule = (input) => {
  const output = newTensor(input)
  const [constraint, [batch, channels, height, width], natural] = matching(input)
  if (batch === undefined || channels === undefined || height === undefined || width === undefined) return []
  const wanted = option(input, 'outputSize')
  const at = (index: number, own: DVar): number | DVar => {
    const size: unknown = Array.isArray(wanted) ? wanted[index] : wanted
    return typeof size === 'number' ? size : own
  }
  return [constraint, shapeOf(output, [batch, channels, at(0, height), at(1, width)]), ...natural]
}

const convolution: ConstraintRule = (input) => {
  const output = newTensor(input)
  const [constraint, sizes, natural] = matching(input)
  const channels = sizes[1]
  if (channels === undefined) return []
  const [kernel, padding, stride, dilation] = [pair(input, 'kernelSize'), pair(input, 'padding'), pair(input, 'stride'), pair(input, 'dilation')]
  return [
    constraint,
    new BinConstraintD(number(input, 'inChannels'), channels, opConsistency),
    new CalcConv(output, tensorAt(input), number(input, 'outChannels'), kernel, padding, stride, dilation, sizes),
    ...natural,
  ]
}

const maxPool: ConstraintRule = (input) => {
  const output = newTensor(input)
  const [constraint, sizes, natural] = matching(input)
  if (option(input, 'ceilMode') === true) throw unsupported(input.node, 'ceilMode is not yet implemented')
  const [kernel, padding, stride, dilation] = [pair(input, 'kernelSize'), pair(input, 'padding'), pair(input, 'stride'), pair(input, 'dilation')]
  return [constraint, new CalcMaxPool(output, tensorAt(input), kernel, padding, stride, dilation, sizes), ...natural]
}

const layerNorm: ConstraintRule = (input) => {
  const shape = option(input, 'normalizedShape')
  const normalized = Array.isArray(shape) ? shape.filter((size) => typeof size === 'number') : []
  return sameShape(input, (sizes) => addLayerNormConstraints(sizes, normalized))
}

/** Rules by the names of layers. */
export const moduleRules: Readonly<Record<string, ConstraintRule>> = {
  'torch.nn.Embedding': (input) => embeddingConstraints(input, number(input, 'embeddingDim')),
  'torch.nn.LayerNorm': layerNorm,
  'torch.nn.Dropout': equal,
  'torch.nn.ReLU': equal,
  'torch.nn.Linear': (input) => linearConstraints(input, number(input, 'inFeatures'), number(input, 'outFeatures')),
  'torch.nn.BatchNorm2d': batchNorm,
  'torch.nn.AdaptiveAvgPool2d': adaptivePool,
  'torch.nn.Conv2d': convolution,
  'torch.nn.MaxPool2d': maxPool,
}
