// The public surface as the declarations tell it: what each entry of the package exports, with its type, a line for each function, class member and type.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** An exported thing: its lines in the surface. */
interface Exported {
  readonly lines: (name: string) => string[]
}

interface DeclarationFile {
  /** What it declares, by its own name. */
  readonly declared: Map<string, Exported>
  readonly exports: Map<string, Exported>
}

/** Reads declaration files of one folder. */
export class Declarations {
  readonly #root: string
  readonly #files = new Map<string, DeclarationFile>()
  /** Members that other files add to a class, by file and name. */
  readonly #added = new Map<string, string[]>()
  readonly #entries: ReadonlySet<string>

  /** `entries`: the files whose exports are surfaces of their own, relative to `root`. What files that `isIgnored` names add to classes of others is left out. */
  constructor(root: string, entries: readonly string[], isIgnored: (path: string) => boolean) {
    this.#root = root
    this.#entries = new Set(entries.map((entry) => resolve(root, entry)))
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }))
      if (name.endsWith('.d.ts') && !isIgnored(name)) this.#findAdditions(resolve(root, name))
  }

  /** The surface of an entry: a line for each thing, sorted. */
  surfaceOf(entry: string): string[] {
    const lines = [...this.#file(resolve(this.#root, entry)).exports].flatMap(([name, exported]) => exported.lines(name))
    return [...new Set(lines)].sort()
  }

  #findAdditions(path: string): void {
    for (const statement of statementsOf(readFileSync(path, 'utf8'))) {
      const [, target, body] = /^declare module '(.*?)' \{(.*)\}$/s.exec(statement) ?? []
      if (target === undefined || body === undefined) continue
      for (const inner of statementsOf(body)) {
        const [, name, members] = /^(?:export )?interface (\w+)(?:<.*?>)? \{(.*)\}$/s.exec(inner) ?? []
        if (name === undefined || members === undefined) continue
        const key = `${this.#resolve(path, target)}#${name}`
        this.#added.set(key, [...(this.#added.get(key) ?? []), ...membersOf(members)])
      }
    }
  }

  #resolve(from: string, target: string): string {
    const path = resolve(dirname(from), target.replace(/\.[tj]s$/, '.d.ts'))
    if (!existsSync(path)) throw new Error(`${from} refers to ${target}, which is not there`)
    return path
  }

  #file(path: string): DeclarationFile {
    let file = this.#files.get(path)
    if (file !== undefined) return file
    file = { declared: new Map(), exports: new Map() }
    this.#files.set(path, file)
    const imports = new Map<string, () => Exported | undefined>()
    const later: (() => void)[] = []
    for (const statement of statementsOf(readFileSync(path, 'utf8'))) this.#read(statement, path, file, imports, later)
    for (const step of later) step()
    // Operators and their options are in the operator table too.
    if (path.includes('/ops/generated/')) for (const name of file.exports.keys()) file.exports.set(name, { lines: () => [] })
    return file
  }

  #read(statement: string, path: string, file: DeclarationFile, imports: Map<string, () => Exported | undefined>, later: (() => void)[]): void {
    const star = /^export \* from '(.*)';$/.exec(statement)
    if (star !== null) {
      later.push(() => {
        for (const [name, exported] of this.#file(this.#resolve(path, star[1] as string)).exports)
          if (!file.exports.has(name)) file.exports.set(name, exported)
      })
      return
    }
    const namespace = /^export \* as (\w+) from '(.*)';$/.exec(statement)
    if (namespace !== null) {
      file.exports.set(namespace[1] as string, this.#namespace(this.#resolve(path, namespace[2] as string)))
      return
    }
    const list = /^export (?:type )?\{(.*?)\}(?: from '(.*)')?;$/s.exec(statement)
    const typeOnly = statement.startsWith('export type')
    if (list !== null) {
      later.push(() => {
        for (const [own, name] of namesOf(list[1] as string)) {
          const source = list[2] === undefined ? undefined : this.#file(this.#resolve(path, list[2])).exports
          const exported = source === undefined ? (file.declared.get(own) ?? imports.get(own)?.()) : source.get(own)
          if (exported === undefined) throw new Error(`${path} exports '${own}', which is not declared`)
          file.exports.set(name, typeOnly ? asType(exported) : exported)
        }
      })
      return
    }
    const imported = /^import (?:type )?\{(.*?)\} from '(\.[^']*)';$/s.exec(statement)
    if (imported !== null) {
      for (const [own, name] of namesOf(imported[1] as string))
        imports.set(name, () => this.#file(this.#resolve(path, imported[2] as string)).exports.get(own))
      return
    }
    const [, prefix, kind, name] =
      /^(export (?:declare )?|declare )(?:abstract )?(class|interface|function|const|let|type) (\w+)/.exec(statement) ?? []
    if (name === undefined || kind === undefined) return
    const exported = this.#declared(path, kind, name, statement, file.declared.get(name))
    file.declared.set(name, exported)
    if (prefix?.startsWith('export') === true) file.exports.set(name, exported)
  }

  #namespace(path: string): Exported {
    return {
      lines: (name) => {
        if (this.#entries.has(path)) return [`namespace ${name}`]
        return [`namespace ${name}`, ...[...this.#file(path).exports].flatMap(([inner, exported]) => exported.lines(`${name}.${inner}`))]
      },
    }
  }

  #declared(path: string, kind: string, own: string, statement: string, before: Exported | undefined): Exported {
    const text = oneLine(statement.replace(/^export /, '').replace(/^declare /, ''))
    const named = (name: string, line: string): string => line.replace(new RegExp(`\\b${own}\\b`), () => name)
    const body = /^(.*?) \{(.*)\}$/s.exec(text)
    if ((kind !== 'class' && kind !== 'interface') || body === null)
      return { lines: (name) => [...(before?.lines(name) ?? []), named(name, text.replace(/;$/, ''))] }
    const members = [...membersOf(body[2] as string), ...(this.#added.get(`${path}#${own}`) ?? [])]
    return { lines: (name) => [...(before?.lines(name) ?? []), named(name, body[1] as string), ...members.map((member) => `${name}.${member}`)] }
  }
}

/** A class that is exported as a type only cannot be made by users. */
const asType = (exported: Exported): Exported => ({
  lines: (name) => exported.lines(name).map((line) => (/^(?:abstract )?class /.test(line) ? `type-only ${line}` : line)),
})

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** `a, b as c, type D` -> [own name, outer name]. */
function namesOf(list: string): [own: string, outer: string][] {
  return list
    .split(',')
    .map((item) => item.trim().replace(/^type /, ''))
    .filter((item) => item !== '')
    .map((item) => {
      const [own = '', outer] = item.split(' as ')
      return [own, outer ?? own]
    })
}

/** Members of a class or interface, without those that are not public, and without comments. */
function membersOf(body: string): string[] {
  return splitAt(body, ';')
    .map(oneLine)
    .filter((member) => member !== '' && !/^#|^private |^declare private /.test(member))
}

/** The statements of a declaration file, without comments. */
function statementsOf(text: string): string[] {
  const bare = text.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
  const statements: string[] = []
  let open = ''
  for (const part of splitAt(bare, ';')) {
    // Blocks end without a semicolon: the next statement begins on a new line at the margin.
    const pieces = part.split(/(?<=^\})\n/m)
    for (const [i, piece] of pieces.entries()) {
      open += piece
      if (i < pieces.length - 1) {
        statements.push(open.trim())
        open = ''
      }
    }
    if (open.trim() !== '') statements.push(`${open.trim()};`)
    open = ''
  }
  return statements.map((s) => (s.endsWith('};') && /^(?:export |declare |abstract )*(?:class|interface|module)\b/.test(s) ? s.slice(0, -1) : s))
}

/** Parts between separators that stand in no brackets and no strings. */
function splitAt(text: string, separator: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  let quote = ''
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string
    if (quote !== '') {
      if (c === quote && text[i - 1] !== '\\') quote = ''
    } else if (c === "'" || c === '"' || c === '`') quote = c
    else if ('({['.includes(c)) depth++
    else if (')}]'.includes(c)) depth--
    else if (c === separator && depth === 0) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  return [...parts, text.slice(start)]
}

/** The entries of the package: their names, and their declaration files. */
export function entriesOf(root: string): [name: string, file: string][] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, { types?: string }> }
  return Object.entries(exports).flatMap(([name, { types }]): [string, string][] =>
    types?.startsWith('./dist/') !== true ? [] : [[name.replace(/^\./, 'tensorfx'), types.replace(/^\.\/dist\//, '')]],
  )
}
