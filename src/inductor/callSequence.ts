// A compiled program as data: the calls that it makes, in order. It becomes a JavaScript function through its source, or, where a page's Content-Security-Policy
// does not allow generated code, a function that goes through the calls.
import { canGenerateCode } from '../protocol/index.ts'
import { InternalError } from '../errors/index.ts'
import type { Block, BlockCopies, CompiledKernel } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import { begin, end } from './runtime.ts'

/** A value while the program runs. */
export type Value =
  /** The program's input with this number. */
  | { readonly kind: 'input'; readonly index: number }
  /** A variable, or the element `item` of its list. */
  | { readonly kind: 'variable'; readonly name: string; readonly item?: number }
  | { readonly kind: 'constant'; readonly value: unknown }
  | { readonly kind: 'list'; readonly items: readonly Value[] }
  /** An address, and this many bytes more. */
  | { readonly kind: 'sum'; readonly address: Value; readonly bytes: number }
  /** `make` is called `name` in the source. */
  | { readonly kind: 'call'; readonly name: string; readonly make: (...args: never[]) => unknown; readonly args: readonly Value[] }

/** One step of the program. */
export type Call =
  | { readonly kind: 'let'; readonly name: string; readonly value: Value; readonly id?: string }
  /** `label` is the comment in the source; `id`, here and where `let` calls an eager kernel, the name of the kernel in reports. */
  | { readonly kind: 'run'; readonly kernel: CompiledKernel; readonly args: readonly Value[]; readonly label: string; readonly id: string }
  /** Copies of spilled tensors: this tensor was written; all that were written go back; and that is all. */
  | { readonly kind: 'written'; readonly tensor: Value }
  | { readonly kind: 'writeBack' }
  | { readonly kind: 'finish' }

/** The calls, and what the program returns. */
export interface CallSequence {
  readonly name: string
  readonly calls: readonly Call[]
  readonly results: readonly Value[]
}

/** A program: takes the inputs in placeholder order and returns the outputs. `source` reads as what it does, whether or not it is what runs. */
export interface Program {
  readonly run: (inputs: readonly unknown[]) => unknown[]
  /** The same, telling after each kernel when it ran. */
  readonly timed: (inputs: readonly unknown[], onLaunch: OnLaunch) => unknown[]
  readonly source: string
  /** What has computed the last call of each compiled kernel, by its name in reports. */
  readonly computedBy: ReadonlyMap<string, CompiledKernel['computedBy']>
}

/** Gets the name of a kernel that has run, and when: times of `performance.now()`. */
export type OnLaunch = (kernel: string, start: number, end: number) => void

/** Makes the program. */
export function programOf(sequence: CallSequence): Program {
  const writer = new SourceWriter(sequence, false)
  const { source } = writer
  let withTimes: Program['timed'] | null = null
  const timed: Program['timed'] = (inputs, onLaunch) =>
    (withTimes ??= canGenerateCode() ? new SourceWriter(sequence, true).compile() : prepare(sequence))(inputs, onLaunch)
  const computedBy = new Map(sequence.calls.flatMap((call) => (call.kind === 'run' ? [[call.id, call.kernel.computedBy] as const] : [])))
  return { source, timed, computedBy, run: canGenerateCode() ? writer.compile() : prepare(sequence) }
}

const now = (): number => performance.now()

/** Writes the source. Values that have no literal become parameters `c0`, `c1` … of the function around it. With `isTimed` the function gets an {@link OnLaunch}, and calls it. */
class SourceWriter {
  readonly source: string
  readonly #sequence: CallSequence
  readonly #constants: unknown[] = []
  readonly #functions = new Map<string, unknown>()

  constructor(sequence: CallSequence, isTimed: boolean) {
    this.#sequence = sequence
    const { name, calls, results } = sequence
    if (isTimed) this.#functions.set('now', now)
    const lines = [...calls.flatMap((call, i) => (isTimed ? this.#timedLines(call, i) : [this.#line(call)])), `return ${this.#list(results)}`]
    const body = lines.map((line) => `    ${line}`)
    const open = [`function ${name}(inputs${isTimed ? ', onLaunch' : ''}) {`, '  const copies = begin(inputs)', '  try {']
    this.source = [...open, ...body, '  } finally {', '    end(copies)', '  }', '}'].join('\n')
  }

  compile(): Program['timed'] & Program['run'] {
    const names = [...this.#functions.keys(), ...this.#constants.map((_, i) => `c${i}`)]
    // eslint-disable-next-line no-implied-eval -- generated code, as in fx
    const make = new Function('begin', 'end', ...names, `return ${this.source}\n//# sourceURL=tensorfx-generated/${this.#sequence.name}.js`)
    return make(begin, end, ...this.#functions.values(), ...this.#constants)
  }

  /** A call, and when it ran if it is that of a kernel. */
  #timedLines(call: Call, position: number): readonly string[] {
    const line = this.#line(call)
    const id = 'id' in call ? call.id : undefined
    return id === undefined ? [line] : [`const start${position} = now()`, line, `onLaunch(${this.#constant(id)}, start${position}, now())`]
  }

  #line(call: Call): string {
    switch (call.kind) {
      case 'let':
        return `const ${call.name} = ${this.#text(call.value)}`
      case 'run': {
        const args = call.args.map((arg) => this.#text(arg)).join(', ')
        return `${this.#constant(call.kernel.run)}(${args}) // ${call.label}`
      }
      case 'written':
        return `copies.written(${this.#text(call.tensor)}.storage.block)`
      case 'writeBack':
      case 'finish':
        return `copies.${call.kind}()`
    }
  }

  #text(value: Value): string {
    switch (value.kind) {
      case 'input':
        return `inputs[${value.index}]`
      case 'variable':
        return value.item === undefined ? value.name : `${value.name}[${value.item}]`
      case 'constant':
        return this.#constant(value.value)
      case 'list':
        return this.#list(value.items)
      case 'sum':
        return `${this.#text(value.address)} + ${value.bytes}`
      case 'call':
        this.#functions.set(value.name, value.make)
        return `${value.name}(${value.args.map((arg) => this.#text(arg)).join(', ')})`
    }
  }

  #list(values: readonly Value[]): string {
    return `[${values.map((value) => this.#text(value)).join(', ')}]`
  }

  #constant(value: unknown): string {
    if (typeof value === 'string') return /^\w*$/.test(value) ? `'${value}'` : JSON.stringify(value)
    if (value === null || typeof value === 'number' || typeof value === 'boolean') return Object.is(value, -0) ? '-0' : String(value)
    let at = this.#constants.indexOf(value)
    if (at < 0) at = this.#constants.push(value) - 1
    return `c${at}`
  }
}

/** What one run of prepared calls has: the inputs, the values of the variables by slot, and the copies of spilled tensors. */
interface Frame {
  readonly inputs: readonly unknown[]
  readonly slots: unknown[]
  readonly copies: BlockCopies
}

type Read = (frame: Frame) => unknown

type Prepared = (inputs: readonly unknown[], onLaunch?: OnLaunch) => unknown[]

/** The sequence as functions that were made from no text. */
function prepare({ calls, results }: CallSequence): Prepared {
  const slots = new Map<string, number>()
  const steps = calls.map((call): ((frame: Frame) => void) => {
    switch (call.kind) {
      case 'let': {
        const value = reader(call.value, slots)
        const slot = slots.size
        slots.set(call.name, slot)
        return (frame) => void (frame.slots[slot] = value(frame))
      }
      case 'run': {
        const args = call.args.map((arg) => reader(arg, slots))
        const { run } = call.kernel
        return (frame) => void Reflect.apply(run, undefined, valuesOf(args, frame))
      }
      case 'written': {
        const tensor = reader(call.tensor, slots)
        return (frame) => frame.copies.written(realBlock(tensor(frame)))
      }
      case 'writeBack':
      case 'finish':
        return ({ copies }) => copies[call.kind]()
    }
  })
  const outputs = results.map((value) => reader(value, slots))
  const ids = calls.map((call) => ('id' in call ? call.id : undefined))
  return (inputs, onLaunch) => {
    const copies = begin(inputs)
    try {
      const frame: Frame = { inputs, slots: [], copies }
      if (onLaunch === undefined) for (const step of steps) step(frame)
      else steps.forEach((step, i) => timedStep(() => step(frame), ids[i], onLaunch))
      return valuesOf(outputs, frame)
    } finally {
      end(copies)
    }
  }
}

/** Runs a step, and tells how long it took if it is a kernel. */
function timedStep(step: () => void, id: string | undefined, onLaunch: OnLaunch): void {
  const start = now()
  step()
  if (id !== undefined) onLaunch(id, start, now())
}

/** A plain loop: these run at every call of a kernel. */
function valuesOf(readers: readonly Read[], frame: Frame): unknown[] {
  const values: unknown[] = []
  for (const read of readers) values.push(read(frame))
  return values
}

function reader(value: Value, slots: ReadonlyMap<string, number>): Read {
  switch (value.kind) {
    case 'input':
      return ({ inputs }) => inputs[value.index]
    case 'variable': {
      const { name, item } = value
      if (name === 'copies') return ({ copies }) => copies
      const slot = slots.get(name)
      if (slot === undefined) throw new InternalError(`inductor: the variable ${name} is read before it is set`)
      if (item === undefined) return (frame) => frame.slots[slot]
      return (frame) => Reflect.get(Object(frame.slots[slot]), item)
    }
    case 'constant':
      return () => value.value
    case 'list': {
      const items = value.items.map((item) => reader(item, slots))
      return (frame) => valuesOf(items, frame)
    }
    case 'sum': {
      const address = reader(value.address, slots)
      return (frame) => Number(address(frame)) + value.bytes
    }
    case 'call': {
      const args = value.args.map((arg) => reader(arg, slots))
      return (frame) => Reflect.apply(value.make, undefined, valuesOf(args, frame))
    }
  }
}

function realBlock(tensor: unknown): Block {
  if (!(tensor instanceof Tensor)) throw new InternalError('inductor: what a kernel writes must be a tensor')
  return tensor.realize().block
}
