// How operators that are neither elementwise nor reductions are written: products, convolutions, pooling, normalization, lookups. Views are in viewRules.ts.
import type { NoRule, OnnxRule, OpDef } from '../../dispatch/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { wrapDim } from '../../tensor/index.ts'
import type { Call } from './call.ts'
import type { Value } from './model.ts'
import { writePointwise, writeReduction } from './pointwise.ts'
import { viewRules, writeTo } from './viewRules.ts'

/** Writes a call; returns a value for each result. */
export type Rule = (call: Call) => Value | readonly Value[]

/** The dimension that an argument names, from 0. A tensor without dimensions counts as one with a single one. */
const axisOf = (call: Call, self: Value, name = 'dim'): number => wrapDim(call.op.qualname, call.number(name), Math.max(self.shape.length, 1))

function likeResult(call: Call, type: string, inputs: readonly (Value | null)[], attributes: Readonly<Record<string, number | string>> = {}): Value {
  const { dtype, shape } = call.result()
  return call.node(type, inputs, dtype, shape, attributes)
}

/** x W^T + b as one node if x is a matrix. */
function linear(call: Call): Value {
  const [input, weight, bias] = [call.tensor('input'), call.tensor('weight'), call.optional('bias')]
  if (input.shape.length === 2) return likeResult(call, 'Gemm', [input, weight, bias], { transB: 1 })
  const turned = call.node('Transpose', [weight], weight.dtype, weight.shape.toReversed(), { perm: [1, 0] })
  const product = likeResult(call, 'MatMul', [input, turned])
  return bias === null ? product : likeResult(call, 'Add', [product, bias])
}

/** The windows of pooling, as ONNX spells them. */
function windows(call: Call) {
  const kernel = call.numbers('kernelSize', 2) ?? call.unsupported('it has no kernel size')
  const padding = call.numbers('padding', 2) ?? [0, 0]
  return {
    kernel_shape: kernel,
    strides: call.numbers('stride', 2) ?? kernel,
    pads: [...padding, ...padding],
    ceil_mode: call.flag('ceilMode') ? 1 : 0,
  }
}

/** Pooling takes images in batches; a single image is one of a batch. */
function inBatches(self: Value, call: Call): Value {
  return self.shape.length === 4 ? self : call.reshape(self, [1, ...self.shape])
}

const batched = (spec: TensorSpec): TensorSpec => (spec.shape.length === 4 ? spec : { ...spec, shape: [1, ...spec.shape] })

function maxPool(call: Call): readonly Value[] {
  const self = inBatches(call.tensor('self'), call)
  const specs = [batched(call.result(0)), batched(call.result(1))]
  const attributes = { ...windows(call), dilations: call.numbers('dilation', 2) ?? [1, 1] }
  const [values, positions] = call.nodes('MaxPool', [self], specs, attributes)
  if (values === undefined || positions === undefined) return call.unsupported('it has no results')
  // ONNX counts positions from the beginning of the batch, PyTorch from that of the plane.
  const plane = self.shape.slice(2).reduce((a, b) => a * b, 1)
  const inPlane = call.elementwise('Mod', [positions, call.scalar('int64', plane)], 'int64')
  return [call.reshape(values, call.result(0).shape), call.reshape(inPlane, call.result(1).shape)]
}

function avgPool(call: Call): Value {
  const self = inBatches(call.tensor('self'), call)
  const attributes = windows(call)
  const divisor = call.args.at(-1)
  const counted = call.flag('countIncludePad') || typeof divisor === 'number'
  if (counted && attributes.ceil_mode === 1 && attributes.pads.some((pad) => pad > 0))
    return call.unsupported('with ceil_mode and padding runtimes disagree on the divisor at the border')
  const { dtype, shape } = batched(call.result())
  const mean = call.node('AveragePool', [self], dtype, shape, { ...attributes, count_include_pad: counted ? 1 : 0 })
  const count = attributes.kernel_shape.reduce((a, b) => a * b, 1)
  const scaled = typeof divisor === 'number' ? call.elementwise('Mul', [mean, call.scalar(dtype, count / divisor)], dtype) : mean
  return call.reshape(scaled, call.result().shape)
}

function layerNorm(call: Call): readonly Value[] {
  const [input, shape] = [call.tensor('input'), call.numbers('normalizedShape') ?? []]
  const [weight, bias] = [call.optional('weight'), call.optional('bias')]
  const size = shape.reduce((a, b) => a * b, 1)
  const filled =
    weight ??
    call.constant(
      input.dtype,
      Array.from({ length: size }, () => 1),
      shape,
    )
  return call.nodes('LayerNormalization', [input, filled, bias], call.results, { axis: -shape.length, epsilon: { float: call.number('eps') } })
}

function argExtreme(type: string): Rule {
  return (call) => {
    const given = call.tensor('self')
    const self = given.dtype === 'bool' ? call.cast(given, 'int32') : given
    const keepdims = call.flag('keepdim') ? 1 : 0
    const dim = call.numbers('dim')
    if (self.shape.length === 0) return call.ints([0], [])
    if (dim !== null) return likeResult(call, type, [self], { axis: axisOf(call, self), keepdims })
    const flat = call.reshape(self, [self.shape.reduce((a, b) => a * b, 1)])
    return call.reshape(call.node(type, [flat], 'int64', [1], { axis: 0, keepdims: 1 }), call.result().shape)
  }
}

function topk(call: Call): readonly Value[] {
  const self = call.tensor('self')
  const flat = self.shape.length === 0 ? call.reshape(self, [1]) : self
  const specs = call.results.map((spec) => ({ ...spec, shape: self.shape.length === 0 ? [call.number('k')] : spec.shape }))
  const attributes = { axis: axisOf(call, self), largest: call.flag('largest') ? 1 : 0, sorted: 1 }
  return call.nodes('TopK', [flat, call.ints([call.number('k')])], specs, attributes).map((value, i) => call.reshape(value, call.result(i).shape))
}

/** A lookup or a write at positions along a dimension. */
function alongDim(type: string, others: readonly string[], attributes: Readonly<Record<string, string>> = {}): Rule {
  return (call) => {
    const [self, index] = [call.tensor('self'), call.tensor('index')]
    // The values may be larger than the index; ONNX wants them equal.
    const rest = others.map((name) => {
      const value = call.tensor(name)
      const starts = index.shape.map(() => 0)
      const fits = value.shape.every((size, i) => size === index.shape[i])
      return fits ? value : call.node('Slice', [value, call.ints(starts), call.ints(index.shape)], value.dtype, index.shape)
    })
    const lines = (value: Value): Value => (value.shape.length === 0 ? call.reshape(value, [1]) : value)
    const { dtype, shape } = call.result()
    const operands = [self, index, ...rest].map(lines)
    const value = call.node(type, operands, dtype, shape.length === 0 ? [1] : shape, { axis: axisOf(call, self), ...attributes })
    return call.reshape(value, shape)
  }
}

/** PyTorch's ways to combine, in ONNX's words. */
const SCATTERS: Readonly<Record<string, string>> = { set: 'none', mul: 'mul', min: 'min', max: 'max' }

const scatterValues: Rule = (call) => {
  const kind = call.text('kind')
  return alongDim('ScatterElements', ['src'], { reduction: SCATTERS[kind] ?? call.unsupported(`ONNX does not combine by '${kind}'`) })(call)
}

function range(call: Call): Value {
  const { dtype, shape } = call.result()
  const [start, step] = [call.number('start'), call.number('step')]
  return call.constant(
    dtype,
    Array.from({ length: shape[0] ?? 0 }, (_, i) => start + i * step),
    shape,
  )
}

function full(call: Call): Value {
  const { dtype, shape } = call.result()
  return call.node('Expand', [call.scalar(dtype, call.number('fillValue')), call.ints(shape)], dtype, shape)
}

const convolution: Rule = (call) => {
  const pads = call.numbers('padding', 2) ?? [0, 0]
  const { dtype, shape } = call.result()
  return call.node('Conv', [call.tensor('input'), call.tensor('weight'), call.optional('bias')], dtype, shape, {
    strides: call.numbers('stride', 2) ?? [1, 1],
    pads: [...pads, ...pads],
    dilations: call.numbers('dilation', 2) ?? [1, 1],
    group: call.number('groups'),
  })
}

/** Runtimes have Relu for floats only. */
const relu: Rule = (call) => (dtypeInfo[call.result().dtype].floating ? likeResult(call, 'Relu', [call.tensor('self')]) : writePointwise(call))

const softmax =
  (type: string): Rule =>
  (call) => {
    const self = call.tensor('self')
    const line = self.shape.length === 0 ? call.reshape(self, [1]) : self
    return call.reshape(call.node(type, [line], self.dtype, line.shape, { axis: axisOf(call, self) }), self.shape)
  }

function cumsum(call: Call): Value {
  const self = call.tensor('self')
  const { dtype, shape } = call.result()
  const line = call.cast(self.shape.length === 0 ? call.reshape(self, [1]) : self, dtype)
  return call.reshape(call.node('CumSum', [line, call.ints([axisOf(call, self)], [])], dtype, line.shape), shape)
}

/** One node for the whole operator. */
const oneNode =
  ({
    node,
    inputs,
    attributes,
  }: {
    readonly node: string
    readonly inputs: readonly string[]
    readonly attributes?: Readonly<Record<string, number>>
  }): Rule =>
  (call) =>
    likeResult(
      call,
      node,
      inputs.map((name) => call.tensor(name)),
      attributes,
    )

/** The rules by the names that declarations have for them. */
const RULES: Readonly<Record<Extract<OnnxRule, string>, Rule>> = {
  ...viewRules,
  argMax: argExtreme('ArgMax'),
  argMin: argExtreme('ArgMin'),
  avgPool,
  convolution,
  cumsum,
  full,
  gather: alongDim('GatherElements', []),
  gelu: (call) => likeResult(call, 'Gelu', [call.tensor('self')], { approximate: call.text('approximate') }),
  layerNorm,
  linear,
  logSoftmax: softmax('LogSoftmax'),
  maxPool,
  range,
  relu,
  scatterAdd: alongDim('ScatterElements', ['src'], { reduction: 'add' }),
  scatterValues,
  softmax: softmax('Softmax'),
  topk,
}

/** How an operator is written: by the rule that it declares, or by its expression for elements; or why it cannot be. */
export function ruleOf(op: OpDef): Rule | NoRule {
  const { onnx: rule } = op
  if (typeof rule === 'string') return RULES[rule]
  if (rule === null) return op.pointwise !== null ? writePointwise : op.reduction !== null ? writeReduction : { none: 'ONNX has no such operator' }
  if ('none' in rule) return rule
  return 'node' in rule ? oneNode(rule) : writeTo(rule)
}
