// Recurrent networks: RNN, LSTM and GRU, which walk a sequence with the steps of recurrentCells.ts; packed sequences too.
import { checkCount } from '../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { Module } from '../../module/index.ts'
import { cat, empty, indexSelect, narrow, split, stack, unbind, unsqueeze, zeros } from '../../ops/index.ts'
import { Tensor, checkTensor, formatShape, getDefaultDtype, sizeEq } from '../../tensor/index.ts'
import { dropout, linear } from '../functional.ts'
import { uniform_ } from '../init.ts'
import { checkInteger, checkNumber, readOptions, readRequired } from '../options.ts'
import type { Named, Trailing } from '../options.ts'
import { PackedSequence } from './packedSequence.ts'
import { Parameter } from '../parameter.ts'
import { GRU_STEP, LSTM_STEP, checkStates, first, recurrenceOf } from './recurrentCells.ts'
import type { Nonlinearity, Recurrence } from './recurrentCells.ts'
import type { LayerFacts } from '../layerFacts.ts'

/** A parameter of a module by its name. */
function parameterOf(module: Module, name: string): Tensor | null {
  const value: unknown = Reflect.get(module, name)
  return value instanceof Tensor ? value : null
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
    for (const parameter of this.parameters()) uniform_(parameter, -bound, bound)
  }

  /** The output and the last states. `given` are the first states, [layers * directions, batch, size] each; null for zeros. */
  protected run<S extends Tensor | PackedSequence>(input: S, given: readonly Tensor[] | null): readonly [output: S, states: readonly Tensor[]]
  protected run(
    input: Tensor | PackedSequence,
    given: readonly Tensor[] | null,
  ): readonly [output: Tensor | PackedSequence, states: readonly Tensor[]] {
    checkStates(this.where, given)
    if (input instanceof PackedSequence) return this.runPacked(input, given)
    checkTensor(this.where, 'input', input)
    const batched = input.ndim === 3
    this.checkInput(
      input.ndim === 2 || input.ndim === 3,
      this.batchFirst ? '[batch, length, features]' : '[length, batch, features]',
      '[length, features]',
      input,
    )
    const sequence = batched ? (this.batchFirst ? input.transpose(0, 1) : input) : unsqueeze(input, 1)
    const states = this.firstStates(sequence, sequence.size(1), given === null || batched ? given : given.map((state) => unsqueeze(state, 1)))
    const [output, last] = this.layers(sequence, null, states)
    if (batched) return [this.batchFirst ? output.transpose(0, 1) : output, last]
    return [output.squeeze(1), last.map((state) => state.squeeze(1))]
  }

  private runPacked(input: PackedSequence, given: readonly Tensor[] | null): readonly [output: PackedSequence, states: readonly Tensor[]] {
    const { data, sizes, sortedIndices, unsortedIndices } = input
    this.checkInput(data.ndim === 2, 'packed', '[steps, features]', data)
    const ordered = (states: readonly Tensor[], indices: Tensor | null): readonly Tensor[] =>
      indices === null ? states : states.map((state) => indexSelect(state, 1, indices))
    const states = this.firstStates(data, sizes[0] ?? 0, given)
    const [output, last] = this.layers(data, sizes, ordered(states, sortedIndices))
    return [input.withData(output), ordered(last, unsortedIndices)]
  }

  private get where(): string {
    return `nn.${this.constructor.name}`
  }

  private checkInput(fits: boolean, expected: string, other: string, input: Tensor): void {
    if (!fits || !sizeEq(input.symSizes.at(-1), this.inputSize))
      throw new ShapeError(
        `${this.where}: the input must be ${expected} or ${other}, with ${this.inputSize} features, got shape ${formatShape(input.shape)}.`,
      )
  }

  /** The output of the last layer, and the last states of all. The input is [length, batch, features], or packed steps, of which `sizes` says how many belong together. */
  private layers(input: Tensor, sizes: readonly number[] | null, states: readonly Tensor[]): readonly [output: Tensor, states: readonly Tensor[]] {
    const ends: Tensor[][] = states.map(() => [])
    let layerInput = input
    for (let layer = 0; layer < this.numLayers; layer++) {
      const outputs = this.suffixes(layer).map((suffix, direction) => {
        const slot = layer * this.directions + direction
        const start = states.map((state) => state.select(0, slot))
        const [output, last] = this.walk(layerInput, sizes, suffix, start, direction === 1)
        last.forEach((state, k) => ends[k]?.push(state))
        return output
      })
      const [only] = outputs
      layerInput = outputs.length === 1 && only !== undefined ? only : cat(outputs, -1)
      if (this.dropout > 0 && this.training && layer < this.numLayers - 1) layerInput = dropout(layerInput, { p: this.dropout, training: true })
    }
    return [layerInput, ends.map((list) => stack(list))]
  }

  private firstStates(input: Tensor, batch: number, given: readonly Tensor[] | null): readonly Tensor[] {
    const count = this.numLayers * this.directions
    const sizes = [this.projSize || this.hiddenSize, this.hiddenSize].slice(0, this.recurrence().states)
    if (given === null) return sizes.map((size) => zeros([count, batch, size], { dtype: input.dtype }))
    sizes.forEach((size, k) => {
      const shape = given[k]?.shape ?? []
      if (shape.join() !== [count, batch, size].join())
        throw new ShapeError(`${this.where}: state ${k} must have shape [${count}, ${batch}, ${size}], got ${formatShape(shape)}.`)
    })
    return given
  }

  private walk(
    input: Tensor,
    sizes: readonly number[] | null,
    suffix: string,
    start: readonly Tensor[],
    backwards: boolean,
  ): readonly [output: Tensor, last: readonly Tensor[]] {
    const weightHh = required(this, `weightHh${suffix}`)
    const [biasHh, weightHr] = [parameterOf(this, `biasHh${suffix}`), parameterOf(this, `weightHr${suffix}`)]
    // The inputs of all steps are projected at once.
    const projected = linear(input, required(this, `weightIh${suffix}`), parameterOf(this, `biasIh${suffix}`))
    const recurrence = this.recurrence()
    const steps = sizes === null ? unbind(projected) : split(projected, sizes)
    const outputs: Tensor[] = []
    // Shorter sequences end earlier; backwards, they begin later.
    const ended: (readonly Tensor[])[] = []
    const rows = (from: number, count: number): readonly Tensor[] => start.map((state) => narrow(state, 0, from, count))
    let state = backwards && sizes !== null ? rows(0, sizes.at(-1) ?? 0) : start
    for (const step of backwards ? steps.toReversed() : steps) {
      const [before, now] = [first(state).size(0), step.size(0)]
      if (now < before) {
        ended.unshift(state.map((s) => narrow(s, 0, now, before - now)))
        state = state.map((s) => narrow(s, 0, 0, now))
      } else if (now > before) {
        const added = rows(before, now - before)
        state = state.map((s, k) => cat([s, added[k] ?? s]))
      }
      state = recurrence.step(step, state, weightHh, biasHh, weightHr)
      outputs.push(first(state))
    }
    const inOrder = backwards ? outputs.toReversed() : outputs
    const last = ended.length === 0 ? state : state.map((s, k) => cat([s, ...ended.map((part) => part[k] ?? s)]))
    return [sizes === null ? stack(inOrder) : cat(inOrder), last]
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

/** h' = tanh(W x + b + U h + c) along a sequence; `forward(input, h)` gives [output, last h]; for a packed
 * sequence the output is packed too. PyTorch's `nn.RNN`. */
export class RNN extends Recurrent {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.RNN' }

  readonly nonlinearity: Nonlinearity

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<RecurrentPositions, RNNOptions>)
  constructor(...args: Named<[['inputSize', number], ['hiddenSize', number]], Trailing<RecurrentPositions, RNNOptions>>)
  constructor(...args: readonly unknown[]) {
    const [inputSize, hiddenSize, ...options] = readRequired<[inputSize: number, hiddenSize: number]>('nn.RNN', ['inputSize', 'hiddenSize'], args)
    const given = readOptions<Required<RNNOptions>>('nn.RNN', { ...defaults(), nonlinearity: 'tanh' }, options)
    recurrenceOf('nn.RNN', given.nonlinearity)
    super('nn.RNN', 1, inputSize, hiddenSize, given, 0)
    this.nonlinearity = given.nonlinearity
  }

  protected override recurrence(): Recurrence {
    return recurrenceOf('nn.RNN', this.nonlinearity)
  }

  override forward(input: PackedSequence, h?: Tensor | null): readonly [output: PackedSequence, h: Tensor]
  override forward(input: Tensor, h?: Tensor | null): readonly [output: Tensor, h: Tensor]
  override forward(input: Tensor | PackedSequence, h: Tensor | null = null): readonly [output: Tensor | PackedSequence, h: Tensor] {
    checkCount(this, arguments, 2)
    const [output, states] = this.run(input, h === null ? null : [h])
    return [output, first(states)]
  }
}

export interface RNN {
  (input: PackedSequence, h?: Tensor | null): readonly [output: PackedSequence, h: Tensor]
}

/** Options of {@link LSTM}. */
export interface LSTMOptions extends RecurrentOptions {
  /** The size of a projection of the output; default 0, no projection. */
  readonly projSize?: number
}

type LSTMStates = readonly [h: Tensor, c: Tensor]

/** Long short-term memory along a sequence; `forward(input, [h, c])` gives [output, [last h, last c]]. PyTorch's `nn.LSTM`. */
export class LSTM extends Recurrent {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.LSTM' }

  protected override recurrence(): Recurrence {
    return LSTM_STEP
  }

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<RecurrentPositions, LSTMOptions>)
  constructor(...args: Named<[['inputSize', number], ['hiddenSize', number]], Trailing<RecurrentPositions, LSTMOptions>>)
  constructor(...args: readonly unknown[]) {
    const [inputSize, hiddenSize, ...options] = readRequired<[inputSize: number, hiddenSize: number]>('nn.LSTM', ['inputSize', 'hiddenSize'], args)
    const given = readOptions<Required<LSTMOptions>>('nn.LSTM', { ...defaults(), projSize: 0 }, options)
    super('nn.LSTM', LSTM_STEP.gates, inputSize, hiddenSize, given, given.projSize)
  }

  override forward(input: PackedSequence, states?: LSTMStates | null): readonly [output: PackedSequence, states: readonly Tensor[]]
  override forward(input: Tensor, states?: LSTMStates | null): readonly [output: Tensor, states: readonly Tensor[]]
  override forward(
    input: Tensor | PackedSequence,
    states: LSTMStates | null = null,
  ): readonly [output: Tensor | PackedSequence, states: readonly Tensor[]] {
    checkCount(this, arguments, 2)
    return this.run(input, states)
  }
}

// Calls with packed sequences: Module's own signature knows only the last one of forward.
export interface LSTM {
  (input: PackedSequence, states?: LSTMStates | null): readonly [output: PackedSequence, states: readonly Tensor[]]
}

/** Gated recurrent units along a sequence; `forward(input, h)` gives [output, last h]. PyTorch's `nn.GRU`. */
export class GRU extends Recurrent {
  /** @internal */
  static readonly layer: LayerFacts = { name: 'nn.GRU' }

  protected override recurrence(): Recurrence {
    return GRU_STEP
  }

  constructor(inputSize: number, hiddenSize: number, ...options: Trailing<RecurrentPositions, RecurrentOptions>)
  constructor(...args: Named<[['inputSize', number], ['hiddenSize', number]], Trailing<RecurrentPositions, RecurrentOptions>>)
  constructor(...args: readonly unknown[]) {
    const [inputSize, hiddenSize, ...options] = readRequired<[inputSize: number, hiddenSize: number]>('nn.GRU', ['inputSize', 'hiddenSize'], args)
    super('nn.GRU', GRU_STEP.gates, inputSize, hiddenSize, readOptions('nn.GRU', defaults(), options), 0)
  }

  override forward(input: PackedSequence, h?: Tensor | null): readonly [output: PackedSequence, h: Tensor]
  override forward(input: Tensor, h?: Tensor | null): readonly [output: Tensor, h: Tensor]
  override forward(input: Tensor | PackedSequence, h: Tensor | null = null): readonly [output: Tensor | PackedSequence, h: Tensor] {
    checkCount(this, arguments, 2)
    const [output, states] = this.run(input, h === null ? null : [h])
    return [output, first(states)]
  }
}

export interface GRU {
  (input: PackedSequence, h?: Tensor | null): readonly [output: PackedSequence, h: Tensor]
}
