// The model of a program: modules, symbols, calls. It is data (JSON), and everything that is written about a program is made from it. Lists are sorted and paths are relative
// to the project with `/`, so that the same sources give the same bytes wherever they are.

/** A program. */
export interface Model {
  readonly schema: 1
  /** Which tensorfx and which compiler made it. */
  readonly generator: string
  readonly name: string
  readonly description: string
  readonly modules: readonly Module[]
  readonly symbols: readonly ProgramSymbol[]
  readonly calls: readonly Call[]
}

/** A doc comment: its text, and its tags in order. Both are Markdown. */
export interface Doc {
  readonly text: string
  readonly tags: readonly { readonly name: string; readonly text: string }[]
}

/** A source file. */
export interface Module {
  readonly path: string
  readonly lines: number
  /** Of its text without a byte order mark, with `\n` at the ends of lines. */
  readonly hash: string
  /** The comment at its head; null without one. */
  readonly header: string | null
  /** The names under which `package.json` exports it: `tensorfx/nn`. */
  readonly entries: readonly string[]
  readonly imports: readonly Import[]
  readonly importers: readonly { readonly path: string; readonly isType: boolean }[]
  readonly exports: readonly Export[]
  /** How many calls it has, and of how many of them the compiler knows no symbol. */
  readonly calls: { readonly total: number; readonly unresolved: number }
}

/** What a module imports from one other module or package. */
export interface Import {
  /** The path of a module of the project, or the name of a package. */
  readonly from: string
  readonly isPackage: boolean
  /** What is imported; `*` for everything, none for an import for its effects. */
  readonly names: readonly string[]
  /** Whether only types are imported. */
  readonly isType: boolean
}

/** A name that a module exports. */
export interface Export {
  readonly name: string
  /** The id of the symbol; null if it is declared outside of the project. */
  readonly symbol: string | null
}

export type SymbolKind =
  | 'class'
  | 'interface'
  | 'type'
  | 'enum'
  | 'function'
  | 'constant'
  | 'namespace'
  | 'method'
  | 'property'
  | 'accessor'
  | 'constructor'

/** Who may use a symbol: users of the package, other modules, or its own module alone. */
export type Visibility = 'public' | 'internal' | 'private'

/** A declaration: at the top of a module, or a member of one. Overloads, merged declarations and the two halves of an accessor are one symbol. */
export interface ProgramSymbol {
  /** `path#Class.member`. */
  readonly id: string
  readonly module: string
  /** `Class.member`. */
  readonly name: string
  readonly kind: SymbolKind
  readonly visibility: Visibility
  /** The entries of the package that export it, as name and export: `tensorfx/nn#Linear`. */
  readonly entries: readonly string[]
  readonly signatures: readonly string[]
  readonly doc: Doc | null
  /** Whether its body is here, so that it can be run. */
  readonly isRunnable: boolean
  readonly line: number
  readonly endLine: number
  /** Of its tokens: comments and layout make no difference. */
  readonly hash: string
  /** Of a class or an interface: the symbols of the project that it extends or implements. */
  readonly heritage: readonly string[]
  readonly throws: readonly Throw[]
  readonly tests: readonly TestUse[]
}

/** An error that a function throws. */
export interface Throw {
  /** The class; null where the compiler does not know it, as for an error that is thrown again. */
  readonly error: string | null
  /** The id of the class, if it belongs to the project. */
  readonly symbol: string | null
  /** The stable code of the error, if its class has one. */
  readonly code: string | null
  /** The message with its gaps, as `expected {n}, got {value}`; null if it is computed elsewhere. */
  readonly message: string | null
  readonly line: number
}

/** A test that names a symbol. */
export interface TestUse {
  readonly file: string
  readonly line: number
  /** Its title, with those of the groups around it. */
  readonly title: string
}

/**
 * A call: `call` and `new` by symbol, `get` for accessors, `value` where a function is handed over, `dynamic` where a value is called of which only the type is known.
 */
export interface Call {
  /** The id of the function that calls; `path#` for the module itself. */
  readonly from: string
  /** The id of what is called. For `dynamic` the expression and its type. */
  readonly to: string
  readonly line: number
  readonly kind: 'call' | 'new' | 'get' | 'value' | 'dynamic'
}

/** The module of an id. */
export const moduleOf = (id: string): string => id.slice(0, id.indexOf('#'))

/** The name in an id. */
export const nameOf = (id: string): string => id.slice(id.indexOf('#') + 1)

/** The folder of a path; '' at the top. */
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** The last part of a path. */
export const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** Orders texts by their code units, which is the same on every machine. */
export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
