// A pickle machine that only builds values. Pickle is a program: with GLOBAL and REDUCE it asks for any function of Python by name and calls it. Here a name is
// looked up in a table of the caller's, which holds what torch.save writes; any other is refused, and nothing is ever imported or run.
import { ArgumentError } from '../errors/index.ts'
import { valueText } from '../protocol/index.ts'

/** What a pickle holds: Python's values as JavaScript's. A dict is a Map, a tuple or a list an array. `T` is what the caller's functions make. */
export type Pickled<T> = T | null | boolean | number | bigint | string | Uint8Array | Pickled<T>[] | Map<Pickled<T>, Pickled<T>> | Global<T>

/** A function of Python that the caller allows, by its place in the table. */
export class Global<T> {
  readonly name: string
  /** Calls it; null if the name stands for itself (a storage class). */
  readonly call: ((args: readonly Pickled<T>[]) => Pickled<T>) | null

  constructor(name: string, call: ((args: readonly Pickled<T>[]) => Pickled<T>) | null) {
    this.name = name
    this.call = call
  }
}

/** What a pickle may ask for. */
export interface Allowed<T> {
  /** By 'module.name'. */
  readonly globals: ReadonlyMap<string, Global<T>>
  /** The object behind a persistent id. */
  readonly persistent: (id: Pickled<T>) => Pickled<T>
}

/** Numbers of at most 64 bits, and no more: a dict of weights has none. */
const LONGEST = 8

/** About the memory that values take, in bytes. What a pickle may ask for grows with the file. */
const COST = { value: 16, remembered: 48, list: 64, dict: 240, call: 1000 }
const FREE_BYTES = 32e6
const TIMES = 8

/** Runs a pickle. One use per file. */
export class Unpickler<T> {
  readonly #where: string
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #allowed: Allowed<T>
  readonly #stack: Pickled<T>[] = []
  /** Heights of the stack at the marks. */
  readonly #marks: number[] = []
  readonly #memo = new Map<number, Pickled<T>>()
  #at = 0
  /** The bytes that values may still take. */
  #left: number

  /** `fileSize` is the size in bytes of the file that the pickle is in. */
  constructor(where: string, bytes: Uint8Array, fileSize: number, allowed: Allowed<T>) {
    this.#where = where
    this.#left = FREE_BYTES + TIMES * fileSize
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#allowed = allowed
  }

  /** The value. Throws ArgumentError, which starts with `where`, for a damaged pickle, and for one that asks for anything that is not allowed. */
  load(): Pickled<T> {
    for (;;) {
      const at = this.#at
      const op = String.fromCharCode(this.#byte())
      if (op === '.') return this.#pop()
      if (!this.#step(op)) throw this.#damaged(`it has the unknown instruction 0x${(this.#bytes[at] ?? 0).toString(16)} at ${at}`)
    }
  }

  #damaged(what: string): ArgumentError {
    return new ArgumentError(`${this.#where}: the pickle in the file is damaged: ${what}. Save or copy the file again.`)
  }

  #spend(bytes: number): void {
    this.#left -= bytes
    if (this.#left < 0) throw this.#damaged('it makes more values than a file of its size can need')
  }

  #take(size: number): number {
    const at = this.#at
    if (!(size >= 0 && at + size <= this.#bytes.length)) throw this.#damaged(`it ends at ${this.#bytes.length}, in the middle of a value`)
    this.#at += size
    return at
  }

  #byte(): number {
    return this.#view.getUint8(this.#take(1))
  }

  #word(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  #raw(size: number): Uint8Array {
    const at = this.#take(size)
    return this.#bytes.subarray(at, at + size)
  }

  #text(size: number): string {
    return new TextDecoder().decode(this.#raw(size))
  }

  #line(): string {
    const end = this.#bytes.indexOf(10, this.#at)
    if (end < 0) throw this.#damaged('a line does not end')
    const text = this.#text(end - this.#at)
    this.#at++
    return text
  }

  /** A little-endian integer of two's complement. */
  #long(size: number): number | bigint {
    if (size > LONGEST) throw this.#damaged(`it has an integer of ${size} bytes`)
    const bytes = this.#raw(size)
    const value = BigInt.asIntN(
      size * 8,
      bytes.reduceRight((n, byte) => n * 256n + BigInt(byte), 0n),
    )
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : value
  }

  #pop(): Pickled<T> {
    const value = this.#top()
    this.#stack.pop()
    return value
  }

  #top(): Pickled<T> {
    const value = this.#stack.at(-1)
    if (value === undefined || this.#stack.length <= (this.#marks.at(-1) ?? 0)) throw this.#damaged('it takes a value that is not there')
    return value
  }

  /** The values since the last mark. */
  #marked(): Pickled<T>[] {
    const at = this.#marks.pop()
    if (at === undefined) throw this.#damaged('a mark is missing')
    return this.#stack.splice(at)
  }

  #several(count: number): Pickled<T>[] {
    return Array.from({ length: count }, () => this.#pop()).reverse()
  }

  #push(value: Pickled<T>): true {
    this.#spend(COST.value)
    this.#stack.push(value)
    return true
  }

  #list(items: Pickled<T>[]): true {
    this.#spend(COST.list + COST.value * items.length)
    return this.#push(items)
  }

  #remember(key: number): true {
    this.#spend(COST.remembered)
    this.#memo.set(key, this.#top())
    return true
  }

  #recall(key: number): true {
    const value = this.#memo.get(key)
    if (value === undefined) throw this.#damaged(`it takes value ${key}, which it has not stored`)
    return this.#push(value)
  }

  #global(module: string, name: string): true {
    const dotted = `${module}.${name}`
    const found = this.#allowed.globals.get(dotted)
    if (found === undefined)
      throw new ArgumentError(
        `${this.#where}: the file asks for Python's ${valueText(dotted)}, which is not part of a state dict, so it was refused; nothing of it was run. ` +
          'If you trust the file, load it in PyTorch and save model.state_dict().',
      )
    return this.#push(found)
  }

  #reduce(): true {
    const args = this.#pop()
    const target = this.#pop()
    if (!(target instanceof Global) || target.call === null || !Array.isArray(args)) throw this.#damaged('it calls something that is not a function')
    this.#spend(COST.call)
    return this.#push(target.call(args))
  }

  #extendDict(pairs: readonly Pickled<T>[]): true {
    const dict = this.#top()
    if (!(dict instanceof Map) || pairs.length % 2 !== 0) throw this.#damaged('it sets items of a value that is not a dict')
    this.#spend(COST.remembered * pairs.length)
    for (let i = 0; i < pairs.length; i += 2) dict.set(pairs[i] ?? null, pairs[i + 1] ?? null)
    return true
  }

  #extendList(items: readonly Pickled<T>[]): true {
    const list = this.#top()
    if (!Array.isArray(list)) throw this.#damaged('it appends to a value that is not a list')
    this.#spend(COST.value * items.length)
    for (const item of items) list.push(item)
    return true
  }

  /** Attributes of an object: torch.save writes those of the dict itself (_metadata), which have no use here. */
  #build(): true {
    this.#pop()
    if (!(this.#top() instanceof Map)) throw this.#damaged('it sets attributes of a value that is not a dict')
    return true
  }

  /** Runs one instruction; false if there is none of that code. */
  #step(op: string): boolean {
    return this.#value(op) || this.#structure(op)
  }

  #value(op: string): boolean {
    if (op === 'N') return this.#push(null)
    if (op === '\x88') return this.#push(true)
    if (op === '\x89') return this.#push(false)
    if (op === 'K') return this.#push(this.#byte())
    if (op === 'M') return this.#push(this.#view.getUint16(this.#take(2), true))
    if (op === 'J') return this.#push(this.#view.getInt32(this.#take(4), true))
    if (op === '\x8a') return this.#push(this.#long(this.#byte()))
    if (op === 'G') return this.#push(this.#view.getFloat64(this.#take(8)))
    if (op === 'X') return this.#push(this.#text(this.#word()))
    if (op === '\x8c') return this.#push(this.#text(this.#byte()))
    if (op === 'B') return this.#push(this.#raw(this.#word()))
    if (op === 'C') return this.#push(this.#raw(this.#byte()))
    return false
  }

  #structure(op: string): boolean {
    if (op === '\x80') return this.#take(1) >= 0
    if (op === '\x95') return this.#take(8) >= 0
    if (op === '(') {
      this.#spend(COST.value)
      return this.#marks.push(this.#stack.length) > 0
    }
    if (op === '0') return this.#pop() !== undefined
    if (op === ')' || op === ']') return this.#list([])
    if (op === '}') {
      this.#spend(COST.dict)
      return this.#push(new Map())
    }
    if (op === 't' || op === 'l') return this.#list(this.#marked())
    if (op === '\x85') return this.#list(this.#several(1))
    if (op === '\x86') return this.#list(this.#several(2))
    if (op === '\x87') return this.#list(this.#several(3))
    if (op === 's') return this.#extendDict(this.#several(2))
    if (op === 'u') return this.#extendDict(this.#marked())
    if (op === 'a') return this.#extendList(this.#several(1))
    if (op === 'e') return this.#extendList(this.#marked())
    if (op === 'q') return this.#remember(this.#byte())
    if (op === 'r') return this.#remember(this.#word())
    if (op === '\x94') return this.#remember(this.#memo.size)
    if (op === 'h') return this.#recall(this.#byte())
    if (op === 'j') return this.#recall(this.#word())
    if (op === 'c') return this.#global(this.#line(), this.#line())
    if (op === '\x93') {
      const [module, name] = this.#several(2)
      if (typeof module !== 'string' || typeof name !== 'string') throw this.#damaged('it asks for a function without a name')
      return this.#global(module, name)
    }
    if (op === 'R') return this.#reduce()
    if (op === 'b') return this.#build()
    if (op === 'Q') return this.#push(this.#allowed.persistent(this.#pop()))
    return false
  }
}
