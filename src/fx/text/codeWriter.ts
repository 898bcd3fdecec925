// Writes a graph as readable JavaScript. The functions that the code calls are bound to names once, so that running it looks nothing up.
import {
  blockComment,
  isFunction,
  isIdentifier,
  lineComment,
  memberAccess,
  propertyKey,
  remembered,
  scalarLiteral,
  targetInfo,
} from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { annotation, withEnvironment } from './annotation.ts'
import { newGlobals } from './codeGlobals.ts'
import { GraphError } from '../graph/errors.ts'
import { WrittenCode } from './generatedCode.ts'
import type { BodyTransformer, GeneratedCode, WriteOptions } from '../graph/graphText.ts'
import { Namespace } from '../graph/namespace.ts'
import { Node, isRecord } from '../graph/node.ts'
import type { Argument, Kwargs, NodeGraph, OutputNode, PlaceholderNode } from '../graph/node.ts'
import { getattr } from '../graph/operator.ts'
import { moduleText, originCode, originOf } from '../graph/origin.ts'
import { Slice } from '../graph/pythonValues.ts'
import { TextBuilder } from './textBuilder.ts'
import { valueType } from './typeText.ts'
import type { HeadTypes } from './typeText.ts'

/** The parts of the code that can be customized; class CodeGen has the defaults. */
export interface CodeStyle {
  readonly bodyTransformer: BodyTransformer | null
  functionHead(parameters: readonly string[], types: HeadTypes | null): string
  returnStatement(value: string): string
  additionalGlobals(): readonly (readonly [string, unknown])[]
  reservedNames(): readonly string[]
}

/** Whether to release the value after its last use. The module holds its attributes anyway, and a shape or number is small. */
const holdsMemory = (node: Node): boolean => node.op !== 'get_attr' && node.target !== getattr

/** Escape sequences for terminals. */
const DIM = '\u001b[2m'
const GREEN = '\u001b[2;32m'
const PLAIN = '\u001b[0m'

/** The type of a parameter, which includes null if that is its default. */
function parameterType(node: Node): string | null {
  const type = valueType(node)
  return type !== null && node.args.length > 0 && node.args[0] === null ? `${type} | null` : type
}

/** Writes the code of `graph` in the style of `codegen`. Throws GraphError for a call of a function that has no name. */
export function writeCode(codegen: CodeStyle, graph: NodeGraph, given: WriteOptions): GeneratedCode {
  const options = withEnvironment(given)
  /** The nodes in order. The lists below have an entry for each. */
  const order: readonly Node[] = graph.numberNodes()
  const names: string[] = []
  /** Position of the last user; 0 if there is none, and for values that are not released. */
  const lastUse = new Uint32Array(order.length)
  const namespace = new Namespace()
  const globals = newGlobals(namespace)
  const parameters: string[] = []
  const body = new TextBuilder()
  /** The lines of the body if a transformer is going to change them; otherwise null, and lines go directly to the body. */
  const lines: string[] | null = codegen.bodyTransformer === null ? null : []
  /** The node of each line of the body. */
  const lineNodes: (Node | null)[] = []
  let lastPlace: string | null = null
  let lastModule: string | null = null

  for (const [name, value] of codegen.additionalGlobals()) globals.reserve(name, value)
  for (const name of codegen.reservedNames()) namespace.reserve(name)
  for (const node of order) names.push(namespace.create(node.name))
  findLastUses()
  for (const node of order) addNode(node)
  return assemble()

  function assemble(): GeneratedCode {
    const { bodyTransformer } = codegen
    if (lines !== null && bodyTransformer !== null) addTransformed(bodyTransformer, lines)
    const head = codegen.functionHead(parameters, headTypes())
    const nodes: (Node | null)[] = head.split('\n').map(() => null)
    for (const node of lineNodes) nodes.push(node)
    nodes.push(null)
    return new WrittenCode([head, ...(lineNodes.length === 0 ? [] : [String(body)]), '}'].join('\n'), globals.values, nodes)
  }

  /** The types for the head, if the options ask for types. */
  function headTypes(): HeadTypes | null {
    const style = options.types
    if (style === undefined) return null
    const output = order.at(-1)
    const types = order.filter((node) => node.op === 'placeholder').map(parameterType)
    const usesThis = order.some((node) => node.op === 'get_attr' || node.op === 'call_module')
    return { style, parameters: types, returns: output?.op === 'output' ? valueType(output) : null, usesThis }
  }

  /** Writes the body as the transformer changes it. */
  function addTransformed(transformer: BodyTransformer, original: readonly string[]): void {
    const places = new LinePlaces(original, lineNodes.splice(0))
    const transformed = transformer(original)
    if (!Array.isArray(transformed) || transformed.some((line) => typeof line !== 'string'))
      throw new GraphError('onGenerateCode: the transformer must return the lines of the body as an array of strings.')
    for (const line of transformed) {
      const node = places.nodeOf(line)
      for (const part of line.split('\n')) if (part !== '' || line === '') addLine(part, node)
    }
  }

  /** Finds where each value is used last, to release it there. The values that the output returns are not released. */
  function findLastUses(): void {
    for (const user of order)
      for (const input of user.allInputNodes)
        if (owns(input) && holdsMemory(input)) lastUse[input.position] = user.op === 'output' ? 0 : user.position
  }

  /** Whether a node belongs to this graph; a graph that lint rejects can still be printed. */
  function owns(node: Node): boolean {
    return order[node.position] === node
  }

  /** Adds a statement, which may have several lines. */
  function addStatement(text: string, node: Node | null): void {
    if (lines !== null) {
      lines.push(text)
      lineNodes.push(node)
    } else if (node !== null && node.op !== 'output') addLine(text, node)
    else for (const line of text.includes('\n') ? text.split('\n').filter((l) => l !== '') : [text]) addLine(line, node)
  }

  function addLine(line: string, node: Node | null): void {
    body.add(`  ${line}`)
    lineNodes.push(node)
  }

  function addNode(node: Node): void {
    if (node.op === 'placeholder') return writeParameter(node)
    if (node.op === 'output') return addStatement(codegen.returnStatement(valueText(node.args[0])), node)
    if (options.verbose === true) writeComments(node)
    let line = expressionText(node)
    if (node.users.size > 0) line = `${lastUse[node.position] === 0 ? 'const' : 'let'} ${nameOf(node)}${typeNote(node)} = ${line}`
    let released = false
    for (const input of node.allInputNodes) {
      if (lastUse[input.position] !== node.position || !owns(input)) continue
      line += `${released ? ' =' : ';'} ${nameOf(input)}`
      released = true
    }
    if (released) line += options.types === 'typescript' ? ' = null!' : ' = null'
    const known = options.verbose === true ? annotation(node, options) : null
    addStatement(known === null ? line : `${line}  ${colored(`// ${lineComment(known)}`, GREEN)}`, node)
  }

  /** `: Tensor`, if the type is known and the options ask for it. */
  function typeNote(node: Node): string {
    const type = options.types === 'typescript' ? valueType(node) : null
    return type === null ? '' : `: ${type}`
  }

  function colored(comment: string, colour: string): string {
    return options.colored === true ? `${colour}${comment}${PLAIN}` : comment
  }

  function nameOf(node: Node): string {
    return (owns(node) ? names[node.position] : undefined) ?? node.name
  }

  /** Adds comments with the module and the user's line, if they differ from those of the previous node. */
  function writeComments(node: Node): void {
    if (options.includeModule === true) addModule(node)
    const frame = originOf(node)
    if (frame === null) {
      if (lastPlace !== '') addComment('No stacktrace found for following nodes')
      lastPlace = ''
      return
    }
    const place = `${frame.file}:${frame.line}:${frame.fn}`
    if (place === lastPlace) return
    lastPlace = place
    const code = originCode(node)
    addComment(`File: ${frame.file}:${frame.line} in ${frame.fn}${code === '' ? '' : `, code: ${code}`}`)
  }

  function addModule(node: Node): void {
    const module = moduleText(node)
    if (module === lastModule) return
    lastModule = module
    if (module !== null) addComment(`Module: ${module}`)
  }

  function addComment(text: string): void {
    addStatement(colored(`// ${lineComment(text)}`, DIM), null)
  }

  function writeParameter(node: PlaceholderNode): void {
    const { target } = node
    const name = nameOf(node)
    const known = options.verbose === true ? annotation(node, options) : null
    const comment = known === null ? '' : ` ${colored(`/* ${blockComment(known)} */`, GREEN)}`
    const rest = target.startsWith('*') && !target.startsWith('**')
    const fallback = rest || node.args.length === 0 ? '' : ` = ${valueText(node.args[0])}`
    parameters.push(`${rest ? '...' : ''}${name}${comment}${fallback}`)
  }

  function expressionText(node: Exclude<Node, PlaceholderNode | OutputNode>): string {
    const { args, kwargs } = node
    switch (node.op) {
      case 'get_attr':
        return pathText(node.target)
      case 'call_module':
        return `${pathText(node.target)}.call(${argumentsText(args, 0, kwargs)})`
      case 'call_method':
        // `__call__` is a call of a traced value itself.
        return `${operandText(args[0])}${node.target === '__call__' ? '' : memberAccess(node.target)}(${argumentsText(args, 1, kwargs)})`
      case 'call_function':
        return callText(node.target, args, kwargs)
    }
  }

  function callText(fn: TargetFunction, args: readonly Argument[], kwargs: Kwargs): string {
    const name = args[1]
    if (fn === getattr && args.length === 2 && typeof name === 'string' && isIdentifier(name)) return `${operandText(args[0])}.${name}`
    return `${globals.callee(fn, targetInfo(fn))}(${argumentsText(args, 0, kwargs)})`
  }

  function pathText(path: string): string {
    return path.includes('.') ? `this${path.split('.').map(memberAccess).join('')}` : `this${memberAccess(path)}`
  }

  /** A value as the object of a member access. */
  function operandText(value: Argument): string {
    return value instanceof Node ? nameOf(value) : `(${valueText(value)})`
  }

  function argumentsText(args: readonly Argument[], from: number, kwargs: Kwargs): string {
    let text = ''
    for (let i = from; i < args.length; i++) text += i === from ? valueText(args[i]) : `, ${valueText(args[i])}`
    const options = objectText(kwargs)
    return options === '{}' ? text : text === '' ? options : `${text}, ${options}`
  }

  function objectText(value: Kwargs): string {
    const keys = Object.keys(value)
    return keys.length === 0 ? '{}' : `{ ${keys.map((k) => `${propertyKey(k)}: ${valueText(value[k])}`).join(', ')} }`
  }

  function valueText(value: Argument): string {
    if (value instanceof Node) return nameOf(value)
    const scalar = scalarLiteral(value)
    if (scalar !== null) return scalar
    if (isFunction(value)) return globals.callee(value, targetInfo(value))
    if (Array.isArray(value)) return `[${value.map((v) => valueText(v)).join(', ')}]`
    if (value instanceof Slice) return `new ${globals.constant(Slice)}(${[value.start, value.stop, value.step].map((v) => valueText(v)).join(', ')})`
    return isRecord(value) ? objectText(value) : globals.constant(value)
  }
}

/** Finds the nodes of lines that went through a transformer. Equal lines are matched in order. */
class LinePlaces {
  readonly #places = new Map<string, (Node | null)[]>()

  constructor(body: readonly string[], nodes: readonly (Node | null)[]) {
    for (const [i, line] of [...body.entries()].reverse()) {
      remembered(this.#places, line, () => []).push(nodes[i] ?? null)
    }
  }

  nodeOf(line: string): Node | null {
    return this.#places.get(line)?.pop() ?? null
  }
}
