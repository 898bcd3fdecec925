// Unique names: of nodes in a graph, and of variables in generated code. PyTorch's _Namespace, with JavaScript's reserved words added.

/** Words that JavaScript does not take as variable names in strict code. */
const JAVASCRIPT =
  'arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements import in ' +
  'instanceof interface let new null package private protected public return static super switch this throw true try typeof undefined var void while with yield Infinity NaN'

/** Python's keywords and builtins, and what PyTorch's generated code refers to: there nodes are called sum_1, max_1, len_1, and so they are here. */
const PYTHON =
  'False True and as assert async await def del elif except from global is lambda nonlocal not or pass raise torch inf nan NoneType device fx_pytree pytree ' +
  'Ellipsis NotImplemented __build_class__ __debug__ __doc__ __import__ __loader__ __name__ __package__ __spec__ abs aiter all anext any ascii bin bool breakpoint bytearray ' +
  'bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod enumerate exec exit filter float format frozenset getattr globals hasattr hash help ' +
  'hex id input int isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow print property quit range repr reversed round set ' +
  'setattr slice sorted staticmethod str sum tuple type vars zip ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError ' +
  'BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError EncodingWarning ' +
  'EnvironmentError Exception ExceptionGroup FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError ' +
  'IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError ' +
  'OverflowError PendingDeprecationWarning PermissionError ProcessLookupError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration ' +
  'StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError ' +
  'UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError'

const ILLEGAL: ReadonlySet<string> = new Set(`${JAVASCRIPT} ${PYTHON}`.split(' '))

/** Whether a name can be written after a dot, or as a key: an ASCII identifier, reserved words included. */
export const isIdentifier = (name: string): boolean => /^[A-Za-z_$][\w$]*$/.test(name)

const LEGAL = /^[A-Za-z_]\w*$/

/** Names given out so far. One per graph for its nodes, and a fresh one per code generation. */
export class Namespace {
  readonly #used = new Set<string>()
  readonly #reserved = new Set<string>()
  /** Number of the last name given for a base. Null until two wishes collide: where all wishes are distinct nobody asks. */
  #counts: Map<string, number> | null = null

  /** A fresh name like `candidate`: itself, or with a number behind it. */
  create(candidate: string): string {
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

  /** Marks a name as taken. */
  reserve(name: string): void {
    if (!this.#used.has(name)) this.#reserved.add(name)
    this.#used.add(name)
  }

  /** Takes a name if it is free, and legal as it is. */
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

/** The base of a name that was taken as it is, and the number that it leaves there. */
function numbered(name: string, end: number, counts: ReadonlyMap<string, number>): [string, number] {
  return end === 0 ? [name, counts.get(name) ?? 0] : [name.slice(0, end), Number(name.slice(end + 1))]
}

/** Where the base of `base_12` ends; 0 when the name has no number behind it. */
function baseEnd(name: string): number {
  let i = name.length
  while (i > 0 && isDigit(name.charCodeAt(i - 1))) i--
  return i > 1 && i < name.length && name.charCodeAt(i - 1) === 95 ? i - 1 : 0
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** `MaxPool2d` -> `max_pool2d`, `ReLU` -> `re_lu`. PyTorch's _snake_case. */
export function snakeCase(name: string): string {
  return /[A-Z]/.test(name) ? name.replace(/([a-z])(?=[A-Z])/g, '$1_').toLowerCase() : name
}
