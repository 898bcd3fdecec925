// The modules that a script needs: those of its backend and operators, and what they import, under paths that keep relative imports as they are.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import MagicString from 'magic-string'
import { ArgumentError } from '../../errors/index.ts'
import { quote } from '../../protocol/index.ts'
import { readSource } from './sources.ts'
import type { Reference, Source } from './sources.ts'

/** The folder of this package. */
export const PACKAGE = fileURLToPath(new URL('../../../', import.meta.url))

/** The name by which programs import a file of this package; null for any other file. */
export function packageName(file: string): string | null {
  const inside = /^(?:.*[\\/])?dist[\\/](index|entries[\\/].+)\.js$/.exec(file)
  const entry = inside?.[1]
  if (entry === undefined) return null
  return entry === 'index' ? 'tensorfx' : `tensorfx/${entry.slice('entries/'.length).split(sep).join('/')}`
}

const isOfTensorfx = (file: string): boolean =>
  file.startsWith(join(PACKAGE, 'dist') + sep) || /[\\/]node_modules[\\/]tensorfx[\\/]dist[\\/]/.test(file)

/** A module on the way into an archive. */
interface Module {
  readonly text: string
  readonly source: Source
}

/** The files of modules, from those that a script names. */
export class Modules {
  readonly #modules = new Map<string, Module>()
  /** Other files that modules read. */
  readonly #data = new Map<string, Uint8Array>()
  readonly #missing = new Set<string>()

  /** Adds a module and what it imports. Throws ArgumentError if it cannot be read. */
  add(file: string): void {
    if (this.#modules.has(file)) return
    let text: string
    try {
      text = readFileSync(file, 'utf8')
    } catch (error) {
      throw new ArgumentError(`the module ${file}, which the script needs, cannot be read.`, { cause: error })
    }
    const source = readSource(text)
    this.#modules.set(file, { text, source })
    for (const problem of source.problems) this.#missing.add(`${file}: ${problem}`)
    for (const reference of source.references) this.#follow(file, reference)
  }

  #follow(from: string, { specifier, kind }: Reference): void {
    const target = fileOf(specifier, from)
    if (target === null) {
      if (kind === 'import' && !isBuiltin(specifier) && !/^(tensorfx(\/|$)|data:)/.test(specifier))
        this.#missing.add(`${from} imports '${specifier}', which is a package or an address and is not inside`)
      return
    }
    if (isOfTensorfx(target)) {
      if (packageName(target) === null) this.#missing.add(`${from} imports '${specifier}', which is not a public module of tensorfx`)
      return
    }
    if (!isFile(target)) {
      this.#missing.add(`${from} refers to '${specifier}', and there is no file ${target}`)
      return
    }
    if (kind === 'import' && /\.[cm]?[jt]s$/.test(target)) this.add(target)
    else this.#data.set(target, readFileSync(target))
  }

  /** What the modules need and the archive will lack. */
  get missing(): readonly string[] {
    return [...this.#missing]
  }

  /** The path of a file in the archive. */
  pathOf(file: string): string {
    return `modules/${relative(this.#root(), file).split(sep).join('/')}`
  }

  /** The folder that all files are in. */
  #root(): string {
    const folders = [...this.#modules.keys(), ...this.#data.keys()].map((file) => dirname(file).split(sep))
    const [first = []] = folders
    let length = first.length
    for (const folder of folders) while (!first.slice(0, length).every((part, i) => part === folder[i])) length--
    return first.slice(0, length).join(sep) || sep
  }

  /** The files by their paths in the archive. */
  files(): ReadonlyMap<string, Uint8Array> {
    const files = new Map<string, Uint8Array>()
    for (const [file, bytes] of this.#data) files.set(this.pathOf(file), bytes)
    for (const [file, module] of this.#modules) {
      files.set(this.pathOf(file), new TextEncoder().encode(this.#rewritten(file, module)))
      // The meaning of .js is that of the package which it was in.
      const type = /\.[jt]s$/.test(file) ? packageType(file) : null
      if (type !== null) files.set(`${dirname(this.pathOf(file))}/package.json`, new TextEncoder().encode(`${JSON.stringify({ type })}\n`))
    }
    return files
  }

  /** The source with addresses of this machine replaced. */
  #rewritten(file: string, { text, source }: Module): string {
    const out = new MagicString(text)
    for (const { specifier, start, end } of source.references) {
      if (!specifier.startsWith('file:')) continue
      const target = fileURLToPath(specifier)
      const name = isOfTensorfx(target) ? packageName(target) : this.#relative(dirname(this.pathOf(file)), target)
      if (name !== null) out.overwrite(start, end, quote(name))
    }
    return out.toString()
  }

  #relative(folder: string, target: string): string | null {
    if (!this.#modules.has(target) && !this.#data.has(target)) return null
    const path = relative(folder, this.pathOf(target)).split(sep).join('/')
    return path.startsWith('.') ? path : `./${path}`
  }
}

/** The file that a specifier leads to; null for packages and other addresses. */
function fileOf(specifier: string, from: string): string | null {
  try {
    if (specifier.startsWith('file:')) return fileURLToPath(specifier)
    return /^\.{0,2}\//.test(specifier) ? fileURLToPath(new URL(specifier, pathToFileURL(from))) : null
  } catch {
    return null
  }
}

const isFile = (path: string): boolean => existsSync(path) && statSync(path).isFile()

/** The `type` of the package that a file is in; null if there is none. */
function packageType(file: string): string | null {
  for (let folder = dirname(resolve(file)); ; folder = dirname(folder)) {
    const path = join(folder, 'package.json')
    if (isFile(path)) {
      const type: unknown = Reflect.get(Object(JSON.parse(readFileSync(path, 'utf8'))), 'type')
      return typeof type === 'string' ? type : null
    }
    if (dirname(folder) === folder) return null
  }
}
