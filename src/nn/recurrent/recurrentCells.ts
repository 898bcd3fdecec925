// The steps of recurrent networks, and the cells that compute one of them: RNNCell, LSTMCell, GRUCell.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Module } from '../../module/index.ts'
import { add, chunk, empty, mul, relu, sigmoid, sub, tanh, zeros } from '../../ops/index.ts'
import { checkArray, checkCount } from '../../protocol/index.ts'
import { checkTensor, formatShape, getDefaultDtype, sameShape, sizeEq } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { linear } from '../functional.ts'
import { uniform_ } from '../init.ts'
import { checkInteger, readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import { Parameter } from '../parameter.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** A step of a recurrent network. The state is [h], of an LSTM [h, c]. `fromInput` is the projection of the input, with its bias. */
export interface Recurrence {
  readonly gates: number
  readonly states: 1 | 2
  readonly step: (fromInput: Tensor, state: readonly Tensor[], weightHh: Tensor, biasHh: Tensor | null, weightHr: Tensor | null) => readonly Tensor[]
}

export const first = (state: readonly Tensor[]): Tensor => {
  const [h] = state
  if (h === undefined) throw new ArgumentError('nn.RNN: the state is empty.')
  return h
}

const simple = (nonlinearity: (x: Tensor) => Tensor): Recurrence => ({
  gates: 1,
  states: 1,
  step: (fromInput, state, weight, bias) => [nonlinearity(add(fromInput, linear(first(state), weight, bias)))],
})

export const LSTM_STEP: Recurrence = {
  gates: 4,
  states: 2,
  step: (fromInput, [h, c], weight, bias, projection) => {
    if (h === undefined || c === undefined) throw new ArgumentError('nn.LSTM: the state must be [h, c].')
    const [input = h, forget = h, cell = h, output = h] = chunk(add(fromInput, linear(h, weight, bias)), 4, -1)
    const next = add(mul(sigmoid(forget), c), mul(sigmoid(input), tanh(cell)))
    const hidden = mul(sigmoid(output), tanh(next))
    return [projection === null ? hidden : linear(hidden, projection), next]
  },
}

export const GRU_STEP: Recurrence = {
  gates: 3,
  states: 1,
  step: (fromInput, state, weight, bias) => {
    const h = first(state)
    const [resetIn = h, updateIn = h, newIn = h] = chunk(fromInput, 3, -1)
    const [reset = h, update = h, fresh = h] = chunk(linear(h, weight, bias), 3, -1)
    const candidate = tanh(add(newIn, mul(sigmoid(add(resetIn, reset)), fresh)))
    const keep = sigmoid(add(updateIn, update))
    return [add(candidate, mul(keep, sub(h, candidate)))]
  },
}

/** The activation of plain recurrent networks. */
export type Nonlinearity = 'tanh' | 'relu'

export function recurrenceOf(where: string, nonlinearity: string): Recurrence {
  if (nonlinearity !== 'tanh' && nonlinearity !== 'relu')
    throw new ArgumentError(`${where}: nonlinearity must be 'tanh' or 'relu', got '${nonlinearity}'.`)
  return simple(nonlinearity === 'tanh' ? tanh : relu)
}

/** Throws ArgumentError unless the first states are null or tensors. */
export function checkStates(where: string, given: unknown): void {
  if (given === null) return
  checkArray(where, 'states', given)
  if (Array.isArray(given)) for (const state of given) checkTensor(where, 'states', state)
}

/** Options of the cells. */
export interface CellOptions {
  readonly bias?: boolean
  readonly dtype?: DType
}

abstract class Cell extends Module {
  readonly inputSize: number
  readonly hiddenSize: number
  weightIh: Parameter
  weightHh: Parameter
  biasIh: Parameter | null
  biasHh: Parameter | null

  constructor(where: string, gates: number, inputSize: number, hiddenSize: number, { bias, dtype }: Required<CellOptions>) {
    super()
    checkInteger(where, 'inputSize', inputSize)
    checkInteger(where, 'hiddenSize', hiddenSize)
    this.inputSize = inputSize
    this.hiddenSize = hiddenSize
    const make = (...shape: number[]): Parameter => new Parameter(empty(shape, { dtype }))
    this.weightIh = make(gates * hiddenSize, inputSize)
    this.weightHh = make(gates * hiddenSize, hiddenSize)
    this.biasIh = bias ? make(gates * hiddenSize) : null
    this.biasHh = bias ? make(gates * hiddenSize) : null
    const bound = 1 / Math.sqrt(hiddenSize)
    for (const parameter of [this.weightIh, this.weightHh, this.biasIh, this.biasHh]) if (parameter !== null) uniform_(parameter, -bound, bound)
  }

  protected step({ step, states }: Recurrence, input: Tensor, given: readonly Tensor[] | null): readonly Tensor[] {
    const where = `nn.${this.constructor.name}`
    checkTensor(where, 'input', input)
    checkStates(where, given)
    if ((input.ndim !== 1 && input.ndim !== 2) || !sizeEq(input.symSizes.at(-1), this.inputSize))
      throw new ShapeError(`${where}: the input must be [batch, ${this.inputSize}] or [${this.inputSize}], got shape ${formatShape(input.shape)}.`)
    const shape = [...input.shape.slice(0, -1), this.hiddenSize]
    for (const state of given ?? [])
      if (!sameShape(state.shape, shape))
        throw new ShapeError(`${where}: the states must have shape ${formatShape(shape)}, got ${formatShape(state.shape)}.`)
    const zero = (): Tensor => zeros(shape, { dtype: input.dtype })
    const state = given ?? Array.from({ length: states }, zero)
    return step(linear(input, this.weightIh, this.biasIh), state, this.weightHh, this.biasHh, null)
  }

  override extraRepr(): string {
    return `${this.inputSize}, ${this.hiddenSize}${this.biasIh === null ? ', bias=False' : ''}`
  }
}

const cellDefaults = (): Required<CellOptions> => ({ bias: true, dtype: getDefaultDtype() })

/** One step of an {@link RNN}: `forward(input, h)` gives the next h. PyTorch's `nn.RNNCell`. */
export class RNNCell extends Cell {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.RNNCell' }

  readonly nonlinearity: Nonlinearity

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<[bias: boolean], CellOptions & { readonly nonlinearity?: Nonlinearity }>)
  constructor(
    ...args: Named<[['inputSize', number], ['hiddenSize', number]], Trailing<[bias: boolean], CellOptions & { readonly nonlinearity?: Nonlinearity }>>
  )
  constructor(...args: readonly unknown[]) {
    const [inputSize, hiddenSize, ...options] = readRequired<[inputSize: number, hiddenSize: number]>('nn.RNNCell', ['inputSize', 'hiddenSize'], args)
    const given = readOptions<Required<CellOptions> & { nonlinearity: Nonlinearity }>(
      'nn.RNNCell',
      { bias: true, nonlinearity: 'tanh', dtype: getDefaultDtype() },
      options,
    )
    recurrenceOf('nn.RNNCell', given.nonlinearity)
    super('nn.RNNCell', 1, inputSize, hiddenSize, given)
    this.nonlinearity = given.nonlinearity
  }

  override forward(input: Tensor, h: Tensor | null = null): Tensor {
    checkCount(this, arguments, 2)
    return first(this.step(recurrenceOf('nn.RNNCell', this.nonlinearity), input, h === null ? null : [h]))
  }
}

/** One step of an {@link LSTM}: `forward(input, [h, c])` gives the next [h, c]. PyTorch's `nn.LSTMCell`. */
export class LSTMCell extends Cell {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.LSTMCell' }

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<[bias: boolean], CellOptions>)
  constructor(...args: Named<[['inputSize', number], ['hiddenSize', number]], Trailing<[bias: boolean], CellOptions>>)
  constructor(...args: readonly unknown[]) {
    const [inputSize, hiddenSize, ...options] = readRequired<[inputSize: number, hiddenSize: number]>(
      'nn.LSTMCell',
      ['inputSize', 'hiddenSize'],
      args,
    )
    super('nn.LSTMCell', LSTM_STEP.gates, inputSize, hiddenSize, readOptions('nn.LSTMCell', cellDefaults(), options))
  }

  override forward(input: Tensor, states: readonly [h: Tensor, c: Tensor] | null = null): readonly Tensor[] {
    checkCount(this, arguments, 2)
    return this.step(LSTM_STEP, input, states)
  }
}

/** One step of a {@link GRU}: `forward(input, h)` gives the next h. PyTorch's `nn.GRUCell`. */
export class GRUCell extends Cell {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.GRUCell' }

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<[bias: boolean], CellOptions>)
  constructor(...args: Named<[['inputSize', number], ['hiddenSize', number]], Trailing<[bias: boolean], CellOptions>>)
  constructor(...args: readonly unknown[]) {
    const [inputSize, hiddenSize, ...options] = readRequired<[inputSize: number, hiddenSize: number]>('nn.GRUCell', ['inputSize', 'hiddenSize'], args)
    super('nn.GRUCell', GRU_STEP.gates, inputSize, hiddenSize, readOptions('nn.GRUCell', cellDefaults(), options))
  }

  override forward(input: Tensor, h: Tensor | null = null): Tensor {
    checkCount(this, arguments, 2)
    return first(this.step(GRU_STEP, input, h === null ? null : [h]))
  }
}
