// Recurrent networks: RNN, LSTM, GRU, and the cells that compute one step. The layers walk the sequence with the same steps; packed sequences are not supported.
import { ArgumentError, ShapeError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { Module } from '../module/index.ts'
import { add, cat, chunk, empty, flip, mul, relu, sigmoid, stack, sub, tanh, unbind, unsqueeze, zeros } from '../ops/index.ts'
import { checkArray } from '../protocol/index.ts'
import { Tensor, checkTensor, formatShape, getDefaultDtype, sameShape } from '../tensor/index.ts'
import { dropout, linear } from './functional.ts'
import { uniform_ } from './init.ts'
import { markLeaf } from './leaf.ts'
import { checkInteger, checkNumber, readOptions } from './options.ts'
import type { Trailing } from './options.ts'
import { Parameter } from './parameter.ts'

/** A step of a recurrent network. The state is [h], of an LSTM [h, c]. `fromInput` is the projection of the input, with its bias. */
interface Recurrence {
  readonly gates: number
  readonly states: 1 | 2
  readonly step: (fromInput: Tensor, state: readonly Tensor[], weightHh: Tensor, biasHh: Tensor | null, weightHr: Tensor | null) => readonly Tensor[]
}

const first = (state: readonly Tensor[]): Tensor => {
  const [h] = state
  if (h === undefined) throw new ArgumentError('nn.RNN: the state is empty.')
  return h
}

const simple = (nonlinearity: (x: Tensor) => Tensor): Recurrence => ({
  gates: 1,
  states: 1,
  step: (fromInput, state, weight, bias) => [nonlinearity(add(fromInput, linear(first(state), weight, bias)))],
})

const LSTM_STEP: Recurrence = {
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

const GRU_STEP: Recurrence = {
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

function recurrenceOf(where: string, nonlinearity: string): Recurrence {
  if (nonlinearity !== 'tanh' && nonlinearity !== 'relu')
    throw new ArgumentError(`${where}: nonlinearity must be 'tanh' or 'relu', got '${nonlinearity}'.`)
  return simple(nonlinearity === 'tanh' ? tanh : relu)
}

/** A parameter of a module by its name. */
function parameterOf(module: Module, name: string): Tensor | null {
  const value: unknown = Reflect.get(module, name)
  return value instanceof Tensor ? value : null
}

/** Throws ArgumentError unless the first states are null or tensors. */
function checkStates(where: string, given: unknown): void {
  if (given === null) return
  checkArray(where, 'states', given)
  if (Array.isArray(given)) for (const state of given) checkTensor(where, 'states', state)
}

function required(module: Module, name: string): Tensor {
  const value = parameterOf(module, name)
  if (value === null) throw new ArgumentError(`${module.constructor.name}: the parameter ${name} is missing.`)
  return value
}

/** Options of {@link RNN}, {@link LSTM} and {@link GRU}. */
export interface RecurrentOptions {
  /** Layers, each of which reads what the one before it says; default 1. */
  readonly numLayers?: number
  readonly bias?: boolean
  /** Inputs are [batch, length, features] instead of [length, batch, features]. */
  readonly batchFirst?: boolean
  /** Of what a layer hands to the next one, in training. */
  readonly dropout?: number
  /** Walk the sequence in both directions, and join what both say. */
  readonly bidirectional?: boolean
  readonly dtype?: DType
}

type RecurrentPositions = [numLayers: number, bias: boolean, batchFirst: boolean, dropout: number, bidirectional: boolean]

abstract class Recurrent extends Module {
  readonly inputSize: number
  readonly hiddenSize: number
  readonly numLayers: number
  readonly bias: boolean
  readonly batchFirst: boolean
  readonly dropout: number
  readonly bidirectional: boolean
  /** The size of the output of an LSTM with a projection; otherwise 0. */
  readonly projSize: number
  protected abstract recurrence(): Recurrence

  constructor(where: string, gates: number, inputSize: number, hiddenSize: number, given: Required<RecurrentOptions>, projSize: number) {
    super()
    checkInteger(where, 'inputSize', inputSize)
    checkInteger(where, 'hiddenSize', hiddenSize)
    checkInteger(where, 'numLayers', given.numLayers)
    checkNumber(where, 'dropout', given.dropout, 'a probability between 0 and 1', (v) => v >= 0 && v <= 1)
    checkInteger(where, 'projSize', projSize, 0)
    if (projSize >= hiddenSize) throw new ArgumentError(`${where}: projSize must be less than hiddenSize, got ${projSize} and ${hiddenSize}.`)
    this.inputSize = inputSize
    this.hiddenSize = hiddenSize
    this.numLayers = given.numLayers
    this.bias = given.bias
    this.batchFirst = given.batchFirst
    this.dropout = given.dropout
    this.bidirectional = given.bidirectional
    this.projSize = projSize
    const outSize = projSize || hiddenSize
    const make = (name: string, shape: readonly number[]): void => this.registerParameter(name, new Parameter(empty(shape, { dtype: given.dtype })))
    for (let layer = 0; layer < given.numLayers; layer++) {
      for (const suffix of this.suffixes(layer)) {
        make(`weightIh${suffix}`, [gates * hiddenSize, layer === 0 ? inputSize : outSize * this.directions])
        make(`weightHh${suffix}`, [gates * hiddenSize, outSize])
        if (given.bias) {
          make(`biasIh${suffix}`, [gates * hiddenSize])
          make(`biasHh${suffix}`, [gates * hiddenSize])
        }
        if (projSize > 0) make(`weightHr${suffix}`, [projSize, hiddenSize])
      }
    }
    this.resetParameters()
  }

  private get directions(): number {
    return this.bidirectional ? 2 : 1
  }

  /** How the names of a layer's parameters end, for each direction. */
  private suffixes(layer: number): readonly string[] {
    return this.bidirectional ? [`L${layer}`, `L${layer}Reverse`] : [`L${layer}`]
  }

  /** New random values, uniform within 1 / sqrt(hiddenSize). */
  resetParameters(): void {
    const bound = 1 / Math.sqrt(this.hiddenSize)
    for (const parameter of this.parameters()) if (parameter instanceof Tensor) uniform_(parameter, -bound, bound)
  }

  /** The output and the last states. `given` are the first states, [layers * directions, batch, size] each; null for zeros. */
  protected run(input: Tensor, given: readonly Tensor[] | null): readonly [output: Tensor, states: readonly Tensor[]] {
    const where = `nn.${this.constructor.name}`
    checkTensor(where, 'input', input)
    checkStates(where, given)
    const batched = input.ndim === 3
    if ((input.ndim !== 2 && input.ndim !== 3) || input.shape.at(-1) !== this.inputSize)
      throw new ShapeError(
        `${where}: the input must be ${this.batchFirst ? '[batch, length, features]' : '[length, batch, features]'} or [length, features], with ${this.inputSize} features, got shape ${formatShape(input.shape)}.`,
      )
    const sequence = batched ? (this.batchFirst ? input.transpose(0, 1) : input) : unsqueeze(input, 1)
    const batch = sequence.size(1)
    const states = this.firstStates(where, sequence, batch, given === null || batched ? given : given.map((state) => unsqueeze(state, 1)))
    const ends: Tensor[][] = states.map(() => [])
    let layerInput = sequence
    for (let layer = 0; layer < this.numLayers; layer++) {
      const outputs = this.suffixes(layer).map((suffix, direction) => {
        const slot = layer * this.directions + direction
        const [output, last] = this.walk(
          layerInput,
          suffix,
          states.map((state) => state.select(0, slot)),
          direction === 1,
        )
        last.forEach((state, k) => ends[k]?.push(state))
        return output
      })
      const [only] = outputs
      layerInput = outputs.length === 1 && only !== undefined ? only : cat(outputs, -1)
      if (this.dropout > 0 && this.training && layer < this.numLayers - 1) layerInput = dropout(layerInput, { p: this.dropout, training: true })
    }
    const last = ends.map((list) => stack(list))
    if (batched) return [this.batchFirst ? layerInput.transpose(0, 1) : layerInput, last]
    return [layerInput.squeeze(1), last.map((state) => state.squeeze(1))]
  }

  private firstStates(where: string, sequence: Tensor, batch: number, given: readonly Tensor[] | null): readonly Tensor[] {
    const count = this.numLayers * this.directions
    const sizes = [this.projSize || this.hiddenSize, this.hiddenSize].slice(0, this.recurrence().states)
    if (given === null) return sizes.map((size) => zeros([count, batch, size], { dtype: sequence.dtype }))
    sizes.forEach((size, k) => {
      const shape = given[k]?.shape ?? []
      if (shape.join() !== [count, batch, size].join())
        throw new ShapeError(`${where}: state ${k} must have shape [${count}, ${batch}, ${size}], got ${formatShape(shape)}.`)
    })
    return given
  }

  private walk(input: Tensor, suffix: string, start: readonly Tensor[], backwards: boolean): readonly [output: Tensor, last: readonly Tensor[]] {
    const weightHh = required(this, `weightHh${suffix}`)
    const [biasHh, weightHr] = [parameterOf(this, `biasHh${suffix}`), parameterOf(this, `weightHr${suffix}`)]
    // The inputs of all steps are projected at once.
    const projected = linear(input, required(this, `weightIh${suffix}`), parameterOf(this, `biasIh${suffix}`))
    const recurrence = this.recurrence()
    const outputs: Tensor[] = []
    let state = start
    for (const step of unbind(backwards ? flip(projected, 0) : projected)) {
      state = recurrence.step(step, state, weightHh, biasHh, weightHr)
      outputs.push(first(state))
    }
    const output = stack(outputs)
    return [backwards ? flip(output, 0) : output, state]
  }

  override extraRepr(): string {
    const { numLayers, bias, batchFirst, dropout: rate, bidirectional, projSize } = this
    const parts = [
      projSize > 0 ? `proj_size=${projSize}` : '',
      numLayers > 1 ? `num_layers=${numLayers}` : '',
      bias ? '' : 'bias=False',
      batchFirst ? 'batch_first=True' : '',
      rate > 0 ? `dropout=${rate}` : '',
      bidirectional ? 'bidirectional=True' : '',
    ]
    return [`${this.inputSize}, ${this.hiddenSize}`, ...parts.filter((part) => part !== '')].join(', ')
  }
}

const defaults = (): Required<RecurrentOptions> => ({
  numLayers: 1,
  bias: true,
  batchFirst: false,
  dropout: 0,
  bidirectional: false,
  dtype: getDefaultDtype(),
})

/** Options of {@link RNN}. */
export interface RNNOptions extends RecurrentOptions {
  /** Default 'tanh'. */
  readonly nonlinearity?: Nonlinearity
}

/** h' = tanh(W x + b + U h + c) along a sequence; `forward(input, h)` gives [output, last h]. PyTorch's `nn.RNN`. */
export class RNN extends Recurrent {
  readonly nonlinearity: Nonlinearity

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<RecurrentPositions, RNNOptions>) {
    const given = readOptions<Required<RNNOptions>>('nn.RNN', { ...defaults(), nonlinearity: 'tanh' }, options)
    recurrenceOf('nn.RNN', given.nonlinearity)
    super('nn.RNN', 1, inputSize, hiddenSize, given, 0)
    this.nonlinearity = given.nonlinearity
  }

  protected override recurrence(): Recurrence {
    return recurrenceOf('nn.RNN', this.nonlinearity)
  }

  override forward(input: Tensor, h: Tensor | null = null): readonly [output: Tensor, h: Tensor] {
    const [output, states] = this.run(input, h === null ? null : [h])
    return [output, first(states)]
  }
}

/** Options of {@link LSTM}. */
export interface LSTMOptions extends RecurrentOptions {
  /** The size of a projection of the output; default 0, no projection. */
  readonly projSize?: number
}

/** Long short-term memory along a sequence; `forward(input, [h, c])` gives [output, [last h, last c]]. PyTorch's `nn.LSTM`. */
export class LSTM extends Recurrent {
  protected override recurrence(): Recurrence {
    return LSTM_STEP
  }

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<RecurrentPositions, LSTMOptions>) {
    const given = readOptions<Required<LSTMOptions>>('nn.LSTM', { ...defaults(), projSize: 0 }, options)
    super('nn.LSTM', LSTM_STEP.gates, inputSize, hiddenSize, given, given.projSize)
  }

  override forward(input: Tensor, states: readonly [h: Tensor, c: Tensor] | null = null): readonly [output: Tensor, states: readonly Tensor[]] {
    return this.run(input, states)
  }
}

/** Gated recurrent units along a sequence; `forward(input, h)` gives [output, last h]. PyTorch's `nn.GRU`. */
export class GRU extends Recurrent {
  protected override recurrence(): Recurrence {
    return GRU_STEP
  }

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<RecurrentPositions, RecurrentOptions>) {
    super('nn.GRU', GRU_STEP.gates, inputSize, hiddenSize, readOptions('nn.GRU', defaults(), options), 0)
  }

  override forward(input: Tensor, h: Tensor | null = null): readonly [output: Tensor, h: Tensor] {
    const [output, states] = this.run(input, h === null ? null : [h])
    return [output, first(states)]
  }
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
    if ((input.ndim !== 1 && input.ndim !== 2) || input.shape.at(-1) !== this.inputSize)
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
  readonly nonlinearity: Nonlinearity

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<[bias: boolean], CellOptions & { readonly nonlinearity?: Nonlinearity }>) {
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
    return first(this.step(recurrenceOf('nn.RNNCell', this.nonlinearity), input, h === null ? null : [h]))
  }
}

/** One step of an {@link LSTM}: `forward(input, [h, c])` gives the next [h, c]. PyTorch's `nn.LSTMCell`. */
export class LSTMCell extends Cell {
  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<[bias: boolean], CellOptions>) {
    super('nn.LSTMCell', LSTM_STEP.gates, inputSize, hiddenSize, readOptions('nn.LSTMCell', cellDefaults(), options))
  }

  override forward(input: Tensor, states: readonly [h: Tensor, c: Tensor] | null = null): readonly Tensor[] {
    return this.step(LSTM_STEP, input, states)
  }
}

/** One step of a {@link GRU}: `forward(input, h)` gives the next h. PyTorch's `nn.GRUCell`. */
export class GRUCell extends Cell {
  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<[bias: boolean], CellOptions>) {
    super('nn.GRUCell', GRU_STEP.gates, inputSize, hiddenSize, readOptions('nn.GRUCell', cellDefaults(), options))
  }

  override forward(input: Tensor, h: Tensor | null = null): Tensor {
    return first(this.step(GRU_STEP, input, h === null ? null : [h]))
  }
}

markLeaf(RNN, LSTM, GRU, RNNCell, LSTMCell, GRUCell)
