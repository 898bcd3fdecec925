// A GraphModule as a folder of code that people can read and change: an ES module with its class, and its tensors as a safetensors file.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { CodeGen, GraphModule, PyTreeCodeGen, Slice } from '../fx/index.ts'
import { Module } from '../module/index.ts'
import { opOf } from '../ops/index.ts'
import { isParameter, lookupTarget, targetInfo } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { attributePaths } from './attributePaths.ts'
import { codegenToJson } from './codegenJson.ts'
import { moduleSpec, unknownModule } from './moduleSpec.ts'
import { readSafetensors, writeSafetensors } from './safetensors.ts'

/** The files of {@link toFolder} by name. */
export interface FolderFiles {
  readonly 'module.mjs': string
  readonly 'state.safetensors': Uint8Array<ArrayBuffer>
}

/**
 * The module as files: `module.mjs` exports a class `name` whose constructor makes its layers and whose `forward` is the generated code, and
 * `load()`, which gives one with the parameters of `state.safetensors`. It needs nothing but tensorfx. Throws ArgumentError for what code cannot say: modules
 * that are neither layers of `nn` nor GraphModules, functions without a registered name, constants without a literal.
 */
export function folderFiles(gm: GraphModule, name = 'FxModule'): FolderFiles {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('toFolder: the first argument must be a GraphModule; trace the model with symbolicTrace first.')
  if (!/^[A-Za-z_$][\w$]*$/.test(name)) throw new ArgumentError(`toFolder: '${name}' is no name for a class.`)
  return new FolderWriter(gm, name).files()
}

/** Writes {@link folderFiles} into `directory`, which is made where it is missing. Node only. PyTorch's GraphModule.to_folder. */
export async function toFolder(gm: GraphModule, directory: string, name = 'FxModule'): Promise<void> {
  const files = folderFiles(gm, name)
  const host = globalThis as { process?: { getBuiltinModule?: (id: string) => unknown } }
  const fs = host.process?.getBuiltinModule?.('node:fs/promises') as
    | { mkdir(path: string, options: { recursive: true }): Promise<unknown>; writeFile(path: string, data: string | Uint8Array): Promise<void> }
    | undefined
  if (fs === undefined) throw new UnsupportedError('toFolder: there is no file system here; folderFiles(gm) gives the files to keep elsewhere.')
  await fs.mkdir(directory, { recursive: true })
  for (const [file, data] of Object.entries(files)) await fs.writeFile(`${directory}/${file}`, data as string | Uint8Array)
}

/** What the written code imports: a place for attributes, and the state. */
export class Attributes extends Module {
  constructor(values: Readonly<Record<string, unknown>>) {
    super()
    for (const [name, value] of Object.entries(values)) {
      if (value instanceof Tensor && !isParameter(value)) this.registerBuffer(name, value)
      else (this as unknown as Record<string, unknown>)[name] = value
    }
  }

  override forward(): never {
    throw new ArgumentError('this module only holds attributes; call the module that it belongs to.')
  }
}

/** Loads the bytes of a safetensors file into a module. For the code that {@link toFolder} writes. */
export function loadState<M extends Module>(module: M, bytes: Uint8Array): M {
  module.loadStateDict(readSafetensors(bytes).tensors)
  return module
}

/** The function registered under that name. For the code that {@link toFolder} writes. Throws ArgumentError when its module was not imported. */
export function registered(name: string): TargetFunction {
  const fn = lookupTarget(name)
  if (fn === undefined) throw new ArgumentError(`the function '${name}' is not registered; import the module that wraps it before this one.`)
  return fn
}

class FolderWriter {
  readonly #gm: GraphModule
  readonly #name: string
  /** What the code refers to at the top of the file: values by name, and how they are written. */
  readonly #constants = new Map<string, { readonly value: unknown; readonly text: string }>()
  #needsPytree = false

  constructor(gm: GraphModule, name: string) {
    this.#gm = gm
    this.#name = name
  }

  files(): FolderFiles {
    const { lines: code, constants } = this.#method(this.#gm, '  ')
    for (const { name, value, text } of constants) this.#constants.set(name, { value, text })
    const fields = this.#attributes(this.#gm, '    ', (field, value) => `${access(field)} = ${value}`)
    const lines = [
      `// ${this.#name}: written by tensorfx from a graph. It may be changed; the parameters are in state.safetensors.`,
      `import { fx, nn, operator, torch } from 'tensorfx'`,
      `import { Attributes, loadState, registered } from 'tensorfx/interop'`,
      ...(this.#needsPytree ? [`import * as pytree from 'tensorfx/pytree'`] : []),
      '',
      ...[...this.#constants].map(([name, { text }]) => constant(name, text)),
      `export class ${this.#name} extends nn.Module {`,
      '  constructor() {',
      '    super()',
      ...fields,
      '  }',
      '',
      ...code,
      '}',
      '',
      '/** One with the saved parameters. `bytes` are those of state.safetensors; in Node they may be left out. */',
      'export async function load(bytes) {',
      `  bytes ??= await (await import('node:fs/promises')).readFile(new URL('state.safetensors', import.meta.url))`,
      `  return loadState(new ${this.#name}(), bytes)${this.#gm.training ? '' : '.eval()'}`,
      '}',
      '',
      '// What is imported for code that may be added.',
      'void [fx, operator, torch, Attributes, registered]',
      '',
    ]
    return { 'module.mjs': lines.join('\n'), 'state.safetensors': writeSafetensors(stateOf(this.#gm)) }
  }

  /** One line for each attribute at the top of a graph; deeper ones stand inside. */
  #attributes(gm: GraphModule, indent: string, line: (field: string, value: string) => string): string[] {
    const tree: Tree = new Map()
    for (const path of attributePaths(gm)) {
      plant(tree, path.split('.'), gm.attribute(path))
    }
    return [...tree].map(([field, value]) => {
      const text = this.#value(value, field, indent)
      return value instanceof Tensor && !isParameter(value)
        ? `${indent}this.registerBuffer(${JSON.stringify(field)}, ${text})`
        : `${indent}this${line(field, text)}`
    })
  }

  #value(value: unknown, path: string, indent: string): string {
    if (value instanceof Map)
      return `new Attributes({ ${[...(value as Tree)].map(([field, v]) => `${JSON.stringify(field)}: ${this.#value(v, `${path}.${field}`, indent)}`).join(', ')} })`
    if (value instanceof Tensor) {
      const empty = `torch.empty(${JSON.stringify(value.shape)}, { dtype: '${value.dtype}' })`
      return isParameter(value) ? `new nn.Parameter(${empty}${value.requiresGrad ? '' : ', { requiresGrad: false }'})` : empty
    }
    if (value instanceof GraphModule) return this.#inner(value, indent)
    if (value instanceof Module) {
      const spec = moduleSpec(value)
      if (spec === null) throw unknownModule('toFolder', path, value)
      return `new nn.${spec.class}(${spec.args.map(literal).join(', ')})`
    }
    throw new ArgumentError(`toFolder: attribute '${path}' is neither a tensor nor a module.`)
  }

  /** A called GraphModule is a class in place; what its code calls by a name that means something else above is a constant of its own. */
  #inner(gm: GraphModule, indent: string): string {
    const { lines: code, constants } = this.#method(gm, `${indent}  `)
    const own: string[] = []
    for (const { name, value, text } of constants) {
      const known = this.#constants.get(name)
      if (known === undefined) this.#constants.set(name, { value, text })
      else if (known.text !== text) own.push(constant(name, text))
    }
    const inner = `${indent}    `
    const fields = this.#attributes(gm, inner, (field, value) => `${access(field)} = ${value}`)
    const lines = [
      'new (class extends nn.Module {',
      `${indent}  constructor() {`,
      `${inner}super()`,
      ...fields,
      `${indent}  }`,
      ...code,
      `${indent}})()`,
    ]
    if (own.length > 0)
      return [`(() => {`, ...own.map((text) => `${indent}  ${text}`), `${indent}  return ${lines.join('\n')}`, `${indent}})()`].join('\n')
    return lines.join('\n')
  }

  /** The generated code as a method, and the constants that it refers to. */
  #method(gm: GraphModule, indent: string): { lines: string[]; constants: Constant[] } {
    const { codegen } = gm.graph
    if (codegen.constructor !== CodeGen && codegen.constructor !== PyTreeCodeGen)
      throw new ArgumentError(
        `toFolder: the code of ${gm.className} is generated by ${codegen.constructor.name}, which cannot be written down; set a CodeGen of tensorfx before.`,
      )
    // Refuses structures that cannot be written.
    codegenToJson(codegen)
    const { source, globals } = gm.graph.generateCode()
    const lines = withRegistered(source, globals.get('torch'))
      .replace(/^function /, '')
      .split('\n')
      .map((text) => `${indent}${text}`)
    const constants: Constant[] = []
    for (const [name, value] of globals) {
      if (name === 'torch' || name === 'operator') continue
      if (codegen instanceof PyTreeCodeGen && name === 'pytree') this.#needsPytree = true
      else if (TAKEN.has(name) || name === this.#name)
        throw new ArgumentError(
          `toFolder: the code calls a function '${name}', which is a name of the file's own; give it another with fx.wrap(fn, { name }).`,
        )
      else
        constants.push({
          name,
          value,
          text: codegen instanceof PyTreeCodeGen && /^(?:in|out)Spec$/.test(name) ? JSON.stringify(value) : constantText(name, value),
        })
    }
    return { lines, constants }
  }
}

/** Calls of functions under `torch` that are no operators are calls of registered functions: `torch` itself does not have all of them. */
function withRegistered(source: string, torch: unknown): string {
  let text = source
  for (const [path, fn] of functionsIn(torch, 'torch'))
    if (opOf(fn) === undefined && !path.startsWith('torch.ops.higher_order.'))
      text = text.replaceAll(`${path}(`, () => `registered(${JSON.stringify(targetInfo(fn)?.name)})(`)
  return text
}

function* functionsIn(holder: unknown, path: string): Generator<[string, TargetFunction]> {
  if (typeof holder === 'function') yield [path, holder as TargetFunction]
  else for (const [key, inner] of Object.entries(holder ?? {})) yield* functionsIn(inner, `${path}.${key}`)
}

/** Something that generated code refers to, and how it is written. */
interface Constant {
  readonly name: string
  readonly value: unknown
  readonly text: string
}

const constant = (name: string, text: string): string => `const ${name} = ${text}`

/** Names that every written file has. */
const TAKEN: ReadonlySet<string> = new Set(['fx', 'nn', 'pytree', 'Attributes', 'loadState', 'registered', 'load'])

function constantText(name: string, value: unknown): string {
  if (value === Slice) return 'fx.Slice'
  const info = targetInfo(value)
  if (info !== undefined && lookupTarget(info.name) === value) return `registered(${JSON.stringify(info.name)})`
  // A namespace that the code generator made.
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === null)
    return `{ ${Object.entries(value)
      .map(([key, inner]) => `${key}: ${constantText(`${name}.${key}`, inner)}`)
      .join(', ')} }`
  throw new ArgumentError(`toFolder: the code needs '${name}', which cannot be written down; register functions with fx.wrap(fn, { name }).`)
}

type Tree = Map<string, unknown>

/** Puts a value at its place, unless it is inside a module that stands there already. */
function plant(tree: Tree, [first = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    tree.set(first, value)
    return
  }
  const inner = tree.get(first) ?? new Map()
  tree.set(first, inner)
  if (inner instanceof Map) plant(inner as Tree, rest, value)
}

const access = (field: string): string => (/^[A-Za-z_$][\w$]*$/.test(field) ? `.${field}` : `[${JSON.stringify(field)}]`)

function literal(value: unknown): string {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return `{ ${Object.entries(value)
      .map(([k, v]) => `${k}: ${literal(v)}`)
      .join(', ')} }`
  return JSON.stringify(value)
}

/** The tensors that the written code makes room for, by path. */
function stateOf(gm: GraphModule, prefix = '', state: Map<string, Tensor> = new Map()): Map<string, Tensor> {
  for (const path of attributePaths(gm)) {
    const value = gm.attribute(path)
    if (value instanceof Tensor) state.set(prefix + path, value)
    else if (value instanceof GraphModule) stateOf(value, `${prefix}${path}.`, state)
    else if (value instanceof Module)
      for (const [name, tensor] of value.stateDict()) state.set(`${prefix}${path}.${name}`, tensor as unknown as Tensor)
  }
  return state
}
