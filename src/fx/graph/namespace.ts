// Unique names for the nodes of a graph and for the variables of generated code. PyTorch's _Namespace, with JavaScript's reserved words added.
import { checkString, snakeCase, targetInfo } from '../../protocol/index.ts'
import type { Target } from './node.ts'

/** Words that strict JavaScript does not accept as variable names. */
const JAVASCRIPT =
  'arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements import in ' +
  'instanceof interface let new null package private protected public return static super switch this throw true try typeof undefined var void while with yield Infinity NaN'

/** Python's keywords and builtins, and the globals of PyTorch's generated code. PyTorch names such nodes sum_1, max_1 and len_1, and so do we. */
const PYTHON =
  'False True and as assert async await def del elif except from global is lambda nonlocal not or pass raise torch inf nan NoneType device fx_pytree ' +
  'pytree Ellipsis NotImplemented __build_class__ __debug__ __doc__ __import__ __loader__ __name__ __package__ __spec__ abs aiter all anext any ascii bin ' +
  'bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod enumerate exec exit filter float ' +
  'format frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter len license list locals map max memoryview min next ' +
  'object oct open ord pow print property quit range repr reversed round set setattr slice sorted staticmethod str sum tuple type vars zip BaseException ' +
  'BaseExceptionGroup Exception ExceptionGroup GeneratorExit KeyboardInterrupt StopAsyncIteration StopIteration SystemExit Warning'

/** The first part of the names that end in Error. */
const PYTHON_ERRORS =
  'Arithmetic Assertion Attribute BlockingIO BrokenPipe Buffer ChildProcess ConnectionAborted Connection ConnectionRefused ConnectionReset EOF ' +
  'Environment FileExists FileNotFound FloatingPoint IO Import Indentation Index Interrupted IsADirectory Key Lookup Memory ModuleNotFound Name ' +
  'NotADirectory NotImplemented OS Overflow Permission ProcessLookup Recursion Reference Runtime Syntax System Tab Timeout Type UnboundLocal ' +
  'UnicodeDecode UnicodeEncode Unicode UnicodeTranslate Value ZeroDivision'

/** The first part of the names that end in Warning. */
const PYTHON_WARNINGS = 'Bytes Deprecation Encoding Future Import PendingDeprecation Resource Runtime Syntax Unicode User'

const ILLEGAL: ReadonlySet<string> = new Set([
  ...`${JAVASCRIPT} ${PYTHON}`.split(' '),
  ...PYTHON_ERRORS.split(' ').map((name) => `${name}Error`),
  ...PYTHON_WARNINGS.split(' ').map((name) => `${name}Warning`),
])

const LEGAL = /^[A-Za-z_]\w*$/

/** The names given out so far. Each graph has one for its nodes, and each code generation uses a new one. */
export class Namespace {
  readonly #used = new Set<string>()
  readonly #reserved = new Set<string>()
  /** The number of the last name given out for each base. Null until two candidates collide, since it is not needed before. */
  #counts: Map<string, number> | null = null

  /** A name that is not taken: `candidate` itself, made a legal identifier, or with a number appended. */
  create(candidate: string): string {
    checkString('Namespace.create', 'candidate', candidate)
    let name = candidate
    if (!LEGAL.test(name)) {
      name = name.replace(/[^0-9A-Za-z_]+/g, '_')
      if (name === '') name = '_unnamed'
      if (/^[0-9]/.test(name)) name = `_${name}`
    }
    const end = baseEnd(name)
    if (this.#take(name, end)) {
      this.#counts?.set(...numbered(name, end, this.#counts))
      return name
    }
    const counts = (this.#counts ??= this.#count())
    const base = end === 0 ? name : name.slice(0, end)
    let number = counts.get(base) ?? 0
    do name = `${base}_${++number}`
    while (this.#used.has(name))
    this.#used.add(name)
    counts.set(base, number)
    return name
  }

  /** Marks a name as taken, without counting it among the names given out. */
  reserve(name: string): void {
    if (!this.#used.has(name)) this.#reserved.add(name)
    this.#used.add(name)
  }

  /** Takes a name if it is free and not a reserved word. */
  #take(name: string, end: number): boolean {
    if (end === 0 && ILLEGAL.has(name)) return false
    const before = this.#used.size
    return this.#used.add(name).size > before
  }

  #count(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const name of this.#used) if (!this.#reserved.has(name)) counts.set(...numbered(name, baseEnd(name), counts))
    return counts
  }
}

/** The base of a name that was taken unchanged, and the last number of that base from now on. */
function numbered(name: string, end: number, counts: ReadonlyMap<string, number>): [string, number] {
  return end === 0 ? [name, counts.get(name) ?? 0] : [name.slice(0, end), Number(name.slice(end + 1))]
}

/** Where the base of `base_12` ends; 0 if the name has no number. */
function baseEnd(name: string): number {
  let i = name.length
  while (i > 0 && isDigit(name.charCodeAt(i - 1))) i--
  return i > 1 && i < name.length && name.charCodeAt(i - 1) === 95 ? i - 1 : 0
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** The name that a node gets if it is free: from the function's name, or the path. */
export function candidateName(target: Target): string {
  if (typeof target === 'string')
    return snakeCase(target.startsWith('__') && target.endsWith('__') && target.length > 4 ? target.slice(2, -2) : target)
  return snakeCase(targetInfo(target)?.shortName ?? (typeof target?.name === 'string' ? target.name : 'undefined'))
}
