// A graph as a class: its code as `forward`, and a constructor that makes what it refers to.
import { ArgumentError } from '../../errors/index.ts'
import { CodeGen, GraphModule, PyTreeCodeGen } from '../../fx/index.ts'
import { attributePaths } from '../../interop/attributePaths.ts'
import { moduleSpec } from '../../interop/moduleSpec.ts'
import { Module } from '../../module/index.ts'
import { literal, lookupTarget, memberAccess, quote, targetInfo, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { InputWriter } from '../files/inputWriter.ts'

/** The code of a graph. */
export interface ReproClass {
  /** The members of the class. */
  readonly lines: readonly string[]
  /** Functions of the program that the code calls: the names in the code, and under which they are registered. */
  readonly functions: ReadonlyMap<string, string>
  /** Whether the code calls Python's operators. */
  readonly usesOperator: boolean
}

/** The same graph with one plain parameter for each placeholder, and its inputs in that order. */
export function flatGraph(gm: GraphModule, inputs: readonly unknown[]): { readonly gm: GraphModule; readonly inputs: readonly unknown[] } {
  const { codegen } = gm.graph
  if (codegen.constructor === CodeGen) return { gm, inputs }
  if (!(codegen instanceof PyTreeCodeGen))
    throw new ArgumentError(
      `the graph has a code generator of its own, ${codegen.constructor.name}, which a repro cannot hold; set a CodeGen of tensorfx.`,
    )
  const copy = gm.deepCopy({ shareTensors: true })
  copy.graph.setCodegen(new CodeGen())
  copy.recompile()
  return { gm: copy, inputs: gm.graph.processInputs(...inputs) }
}

/** The class of a graph. The data of its tensors goes to `writer`. Throws ArgumentError for what no code can make. */
export function reproClass(gm: GraphModule, writer: InputWriter): ReproClass {
  const { source, globals } = gm.graph.generateCode()
  const functions = new Map<string, string>()
  for (const [name, value] of globals) if (name !== 'torch' && name !== 'operator') functions.set(name, registeredName(name, value))
  const members = new Members(gm, writer).lines()
  const constructor = members.length === 0 ? [] : ['constructor(reader) {', '  super()', ...members.map((line) => `  ${line}`), '}', '']
  const forward = source
    .trim()
    .replace(/^function\s+/, '')
    .split('\n')
  return { lines: [...constructor, ...forward], functions, usesOperator: globals.has('operator') }
}

/** The name under which a function of the program is registered. */
function registeredName(name: string, value: unknown): string {
  const info = targetInfo(value)
  if (info === undefined || lookupTarget(info.name) !== value)
    throw new ArgumentError(`the graph uses '${name}' (${valueText(value)}), which a repro cannot hold: wrap a function with fx.wrap(fn, { name }).`)
  return info.name
}

/** The lines of a constructor. */
class Members {
  readonly #gm: GraphModule
  readonly #writer: InputWriter
  readonly #holders = new Set<string>()

  constructor(gm: GraphModule, writer: InputWriter) {
    this.#gm = gm
    this.#writer = writer
  }

  lines(): readonly string[] {
    const paths = [...new Set(attributePaths(this.#gm))].filter((path) => isUsed(this.#gm, path))
    const modules = paths.filter((path) => this.#gm.attribute(path) instanceof Module)
    for (const path of modules) this.#module(path, this.#gm.attribute(path))
    for (const path of paths)
      if (!modules.some((module) => path === module || path.startsWith(`${module}.`))) this.#value(path, this.#gm.attribute(path))
    return this.#writer.lines()
  }

  #line(name: string, value: unknown, line: (expression: string) => string): void {
    this.#writer.use(name, value, line)
  }

  #value(path: string, value: unknown): void {
    const { owner, name } = this.#owner(path)
    if (value instanceof Tensor)
      this.#line(path, value, (text) => `${owner}.${value.isParameter ? 'registerParameter' : 'registerBuffer'}(${quote(name)}, ${text})`)
    else this.#line(path, value, (text) => `${owner}${memberAccess(name)} = ${text}`)
  }

  #module(path: string, value: unknown): void {
    const { owner, name } = this.#owner(path)
    const spec = value instanceof Module ? moduleSpec(value) : null
    if (!(value instanceof Module) || spec === null)
      throw new ArgumentError(
        `the module '${path}' (${valueText(value)}) cannot be written into a repro: only layers of torch.nn can. Trace its operators, e.g. with makeFx.`,
      )
    const module = `${owner}${memberAccess(name)}`
    this.#text(`${module} = new nn.${spec.class}(${spec.args.map((arg) => literal(arg) ?? 'undefined').join(', ')})`)
    if (!value.training) this.#text(`${module}.train(false)`)
    for (const [inner, tensor] of [...value.namedParameters(), ...value.namedBuffers()]) this.#value(`${path}.${inner}`, tensor)
  }

  /** A line without data. */
  #text(line: string): void {
    this.#line('', null, () => line)
  }

  /** The expression for the module that holds an attribute, which is made if it is none of the layers. */
  #owner(path: string): { readonly owner: string; readonly name: string } {
    const parts = path.split('.')
    const name = parts.pop() ?? ''
    let owner = 'this'
    let at = ''
    for (const part of parts) {
      owner += memberAccess(part)
      at = at === '' ? part : `${at}.${part}`
      if (!this.#holders.has(at) && !this.#isLayer(at)) this.#text(`${owner} = new nn.Module()`)
      this.#holders.add(at)
    }
    return { owner, name }
  }

  /** Whether the module at a path is a layer, or inside of one. */
  #isLayer(path: string): boolean {
    const parts = path.split('.')
    return parts.some((_, i) => {
      const value = this.#gm.attribute(parts.slice(0, i + 1).join('.'))
      return value instanceof Module && moduleSpec(value) !== null
    })
  }
}

/** Whether a node refers to an attribute. */
const isUsed = (gm: GraphModule, path: string): boolean =>
  [...gm.graph.nodes].some(
    (node) => (node.op === 'get_attr' || node.op === 'call_module') && (node.target === path || node.target.startsWith(`${path}.`)),
  )
