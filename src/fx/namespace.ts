// Unique names: of nodes in a graph, and of variables in generated code. PyTorch's _Namespace, with JavaScript's reserved words.

const ILLEGAL: ReadonlySet<string> = new Set(
  (
    'arguments await async break case catch class const continue debugger default delete do else enum eval export extends false finally for function if implements ' +
    'import in instanceof interface let new null package private protected public return static super switch this throw true try typeof undefined var void while with yield ' +
    // What generated code refers to, and Python's builtins that torch's names shadow: PyTorch calls these sum_1, max_1, …
    'torch operator globals inf nan NaN Infinity NoneType device fx_pytree pytree ' +
    'abs all any bin bool chr complex dict dir divmod enumerate exec filter float format frozenset getattr hasattr hash hex id input int isinstance iter len list locals map ' +
    'max min next object oct open ord pow print range repr reversed round set setattr slice sorted str sum tuple type vars zip'
  ).split(' '),
)

/** Whether a name is an identifier of JavaScript (ASCII). */
export const isIdentifier = (name: string): boolean => /^[A-Za-z_$][\w$]*$/.test(name)

export class Namespace {
  readonly #used = new Set<string>()
  readonly #counters = new Map<string, number>()

  /** A fresh name like `candidate`: itself, or with a number. */
  create(candidate: string): string {
    let name = candidate.replace(/[^0-9A-Za-z_]+/g, '_')
    if (name === '') name = '_unnamed'
    if (/^[0-9]/.test(name)) name = `_${name}`
    if (!this.#used.has(name) && !ILLEGAL.has(name)) {
      const plain = /_\d+$/.test(name)
      if (!plain) {
        this.#used.add(name)
        return name
      }
    }
    const match = /^(.*?)_(\d+)$/.exec(name)
    let base = name
    let number = 0
    if (match !== null) {
      base = match[1] as string
      number = Number(match[2])
    }
    let result = name
    if (number === 0) number = this.#counters.get(base) ?? 0
    while (this.#used.has(result) || ILLEGAL.has(result)) result = `${base}_${++number}`
    this.#counters.set(base, number)
    this.#used.add(result)
    return result
  }

  /** Marks a name as taken. */
  reserve(name: string): void {
    this.#used.add(name)
  }
}

/** `PascalCase.thing` -> `pascal_case_thing`; ALL_CAPS -> all_caps. PyTorch's _snake_case. */
export function snakeCase(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1_$2').toLowerCase()
}
