// From a script on this machine to an archive that runs elsewhere: addresses become paths in the archive, and the files that they lead to go along.
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AnyNode, ObjectExpression } from 'acorn'
import MagicString from 'magic-string'
import { differenceFrom, writtenHere } from '../../debug/script/environment.ts'
import { ArgumentError } from '../../errors/index.ts'
import { isObject, quote } from '../../protocol/index.ts'
import { packArchive } from './archive.ts'
import type { Manifest } from './archive.ts'
import { Modules, packageName } from './modules.ts'
import { isString, nodesOf, readSource, urlLiteral } from './sources.ts'

/** What was packed. */
export interface Packed {
  readonly archive: Uint8Array
  readonly files: readonly string[]
  readonly missing: readonly string[]
}

/** A repro script as an archive. `backend` names a module and its export for a script that has to be told of it. Throws ArgumentError for any other file, and if data is missing. */
export async function pack(path: string, backend: string | null = null): Promise<Packed> {
  return new Script(resolve(path), backend).pack()
}

class Script {
  readonly #path: string
  readonly #backend: string | null
  readonly #text: string
  readonly #program: AnyNode
  readonly #settings: ReadonlyMap<string, AnyNode>
  readonly #out: MagicString
  readonly #modules = new Modules()
  readonly #files = new Map<string, Uint8Array>()

  constructor(path: string, backend: string | null) {
    this.#path = path
    this.#backend = backend
    if (!existsSync(path)) throw new ArgumentError(`there is no file ${path}.`)
    this.#text = readFileSync(path, 'utf8')
    const { program } = readSource(this.#text)
    const settings = program === null ? null : settingsIn(program)
    if (program === null || settings === null)
      throw new ArgumentError(`${path} is no repro script: it does not call runRepro(Repro, loadArgs, { … }).`)
    this.#program = program
    this.#settings = settings
    this.#out = new MagicString(this.#text)
  }

  async pack(): Promise<Packed> {
    const urls = this.#moduleUrls()
    for (const url of urls) this.#modules.add(fileURLToPath(url))
    this.#rewrite(new Set(urls))
    this.#addStorages()
    this.#addRecord()
    const script = basename(this.#path)
    const modules = this.#modules.files()
    const files = new Map([[script, new TextEncoder().encode(this.#source(urls))], ...this.#files, ...modules])
    const missing = [...this.#modules.missing]
    const about: Omit<Manifest, 'format' | 'version' | 'files'> = {
      script,
      written: this.#written(),
      packed: { ...EMPTY, ...writtenHere() },
      config: this.#config(),
      modules: [...modules.keys()],
      missing,
      needsBackend: this.#needsBackend() && this.#backend === null,
    }
    return { archive: await packArchive(about, files), files: [...files.keys()], missing }
  }

  /** The text of the script in the archive. What is left of the modules' addresses is in comments. */
  #source(urls: readonly string[]): string {
    return urls.reduce((text, url) => text.replaceAll(url, `./${this.#modules.pathOf(fileURLToPath(url))}`), this.#out.toString())
  }

  /** The modules that the script names: imports of other things than tensorfx, and its backend. */
  #moduleUrls(): readonly string[] {
    const texts = [...this.#moduleTexts()].map((text) => text.split('#')[0] ?? '')
    const chosen = this.#backend === null ? [] : [chosenUrl(this.#backend).split('#')[0] ?? '']
    return [...new Set([...texts, ...chosen])].filter((url) => url.startsWith('file:') && packageName(fileURLToPath(url)) === null)
  }

  *#moduleTexts(): Generator<string> {
    for (const node of nodesOf(this.#program)) if (node.type === 'ImportDeclaration' && typeof node.source.value === 'string') yield node.source.value
    const imports = this.#settings.get('imports')
    if (imports?.type === 'ArrayExpression') for (const item of imports.elements) if (isString(item)) yield item.value
    const backend = this.#settings.get('backend')
    if (isString(backend) && backend.value.startsWith('file:')) yield backend.value
  }

  #rewrite(modules: ReadonlySet<string>): void {
    for (const node of nodesOf(this.#program)) {
      if (node.type !== 'ImportDeclaration' || typeof node.source.value !== 'string') continue
      const { value, start, end } = node.source
      if (modules.has(value)) this.#out.overwrite(start, end, quote(`./${this.#modules.pathOf(fileURLToPath(value))}`))
      else if (value.startsWith('file:')) this.#out.overwrite(start, end, quote(packageName(fileURLToPath(value)) ?? value))
    }
    const imports = this.#settings.get('imports')
    for (const item of imports?.type === 'ArrayExpression' ? imports.elements : []) this.#relocate(item, modules)
    const backend = this.#settings.get('backend')
    this.#relocate(backend, modules)
    if (this.#backend !== null && backend !== undefined) {
      const url = chosenUrl(this.#backend)
      const [module = '', name = ''] = url.split('#')
      this.#out.overwrite(backend.start, backend.end, here(`${this.#modules.pathOf(fileURLToPath(module))}#${name}`))
    }
  }

  /** A module's address becomes one in the archive. */
  #relocate(node: AnyNode | null | undefined, modules: ReadonlySet<string>): void {
    if (!isString(node)) return
    const [module = '', name] = node.value.split('#')
    if (modules.has(module)) {
      const path = this.#modules.pathOf(fileURLToPath(module))
      this.#out.overwrite(node.start, node.end, here(name === undefined ? path : `${path}#${name}`))
    }
  }

  /** The storages that `reader.storage('hash', …)` names. */
  #addStorages(): void {
    const setting = this.#settings.get('saveDir')
    const folder = this.#folder(setting)
    for (const node of nodesOf(this.#program)) {
      if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') continue
      const { property } = node.callee
      const [hash] = node.arguments
      if (property.type !== 'Identifier' || property.name !== 'storage' || !isString(hash)) continue
      const path = join(folder ?? '', 'storages', hash.value)
      if (folder === null || !/^[0-9a-f]{40}$/.test(hash.value) || !existsSync(path))
        throw new ArgumentError(`the script needs the storage ${hash.value}, but there is no file ${path}.`)
      this.#files.set(`storages/${hash.value}`, readFileSync(path))
    }
    if (setting !== undefined && folder !== null) this.#out.overwrite(setting.start, setting.end, `new URL('./', import.meta.url)`)
  }

  #addRecord(): void {
    const setting = this.#settings.get('record')
    const path = this.#folder(setting)
    if (setting === undefined || path === null || !existsSync(path)) return
    this.#files.set('last_run.json', readFileSync(path))
    this.#out.overwrite(setting.start, setting.end, `new URL('./last_run.json', import.meta.url)`)
  }

  /** The path that `new URL('…', import.meta.url)` or a text stands for; null if there is none. */
  #folder(node: AnyNode | undefined): string | null {
    if (node === undefined) return null
    const literal = urlLiteral(node)
    if (literal !== null) return fileURLToPath(new URL(literal.value, pathToFileURL(this.#path)))
    return isString(node) ? resolve(dirname(this.#path), node.value) : null
  }

  #needsBackend(): boolean {
    const backend = this.#settings.get('backend')
    return backend === undefined || !isString(backend)
  }

  #written(): Manifest['written'] {
    const written = this.#settings.get('written')
    const value = written === undefined ? null : valueOf(written)
    return isWritten(value) ? { ...EMPTY, ...value } : null
  }

  /** What the script assigns to `config`. */
  #config(): Readonly<Record<string, unknown>> {
    for (const node of nodesOf(this.#program)) {
      if (node.type !== 'CallExpression') continue
      const [target, settings] = node.arguments
      if (target?.type === 'Identifier' && target.name === 'config' && settings?.type === 'ObjectExpression') {
        const value = valueOf(settings)
        return isObject(value) ? { ...value } : {}
      }
    }
    return {}
  }
}

const EMPTY = { node: undefined, v8: undefined, platform: undefined, execArgv: undefined, env: undefined }

const isWritten = (value: unknown): value is { readonly tensorfx: string } => isObject(value) && typeof Reflect.get(value, 'tensorfx') === 'string'

/** The code for an address in the archive. */
const here = (path: string): string => `new URL(${quote(`./${path}`)}, import.meta.url).href`

/** `./mine.mjs#mine` as an address. Throws ArgumentError for anything else. */
function chosenUrl(backend: string): string {
  const at = backend.lastIndexOf('#')
  if (at <= 0) throw new ArgumentError(`--backend names a module and its export, ./file.mjs#export; got '${backend}'.`)
  const module = backend.slice(0, at)
  return `${module.startsWith('file:') ? module : pathToFileURL(resolve(module)).href}#${backend.slice(at + 1)}`
}

/** The properties of the last argument of `runRepro(Repro, loadArgs, { … })`. */
function settingsIn(program: AnyNode): ReadonlyMap<string, AnyNode> | null {
  for (const node of nodesOf(program)) {
    if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier' || node.callee.name !== 'runRepro') continue
    const options = node.arguments[2]
    if (options?.type === 'ObjectExpression') return propertiesOf(options)
  }
  return null
}

function propertiesOf(node: ObjectExpression): ReadonlyMap<string, AnyNode> {
  const properties = new Map<string, AnyNode>()
  for (const property of node.properties) {
    if (property.type !== 'Property' || property.computed) continue
    const { key } = property
    if (key.type === 'Identifier') properties.set(key.name, property.value)
    else if (isString(key)) properties.set(key.value, property.value)
  }
  return properties
}

/** The value of a literal. */
function valueOf(node: AnyNode): unknown {
  if (node.type === 'Literal') return node.value
  if (node.type === 'ArrayExpression') return node.elements.map((item) => (item === null ? null : valueOf(item)))
  if (node.type === 'ObjectExpression') return Object.fromEntries([...propertiesOf(node)].map(([key, value]) => [key, valueOf(value)]))
  return null
}

/** What is different where an archive runs; null if nothing is. */
export const differenceHere = ({ written }: Manifest): string | null => {
  if (written === null) return null
  const { tensorfx, node, v8, platform } = written
  return differenceFrom({
    tensorfx,
    ...(node === undefined ? {} : { node }),
    ...(v8 === undefined ? {} : { v8 }),
    ...(platform === undefined ? {} : { platform }),
  })
}
