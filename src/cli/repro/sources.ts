// What a module refers to: the specifiers of its imports, and the files that it names by `new URL('./x', import.meta.url)`.
import { parse } from 'acorn'
import type { AnyNode, Literal } from 'acorn'
import { isObject } from '../../protocol/index.ts'

/** A text in a source that leads to another file. */
export interface Reference {
  readonly specifier: string
  /** Where the literal is, quotes included. */
  readonly start: number
  readonly end: number
  /** An import is resolved as one; a file is only read. */
  readonly kind: 'import' | 'file'
}

/** A source whose references are known. */
export interface Source {
  readonly references: readonly Reference[]
  /** What could not be found out. */
  readonly problems: readonly string[]
  readonly program: AnyNode | null
}

type StringLiteral = Literal & { readonly value: string }

const isNode = (value: unknown): value is AnyNode => isObject(value) && typeof Reflect.get(value, 'type') === 'string'

export const isString = (node: unknown): node is StringLiteral => isNode(node) && node.type === 'Literal' && typeof node.value === 'string'

/** All nodes below a node, and itself. */
export function* nodesOf(node: AnyNode): Generator<AnyNode> {
  const waiting = [node]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    yield next
    for (const value of Object.values(next)) {
      const parts: readonly unknown[] = Array.isArray(value) ? value : [value]
      for (const part of parts) if (isNode(part)) waiting.push(part)
    }
  }
}

const isImportMetaUrl = (node: unknown): boolean =>
  isNode(node) &&
  node.type === 'MemberExpression' &&
  node.object.type === 'MetaProperty' &&
  node.property.type === 'Identifier' &&
  node.property.name === 'url'

/** The literal in `new URL('./x', import.meta.url)`; null for anything else. */
export function urlLiteral(node: AnyNode): StringLiteral | null {
  if (node.type !== 'NewExpression' || node.callee.type !== 'Identifier' || node.callee.name !== 'URL') return null
  const [path, base] = node.arguments
  return isString(path) && isImportMetaUrl(base) ? path : null
}

function referenceIn(node: AnyNode): { readonly literal: AnyNode; readonly kind: Reference['kind'] } | null {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ImportExpression':
      return { literal: node.source, kind: 'import' }
    case 'ExportNamedDeclaration':
      return node.source === null || node.source === undefined ? null : { literal: node.source, kind: 'import' }
    case 'CallExpression': {
      const [argument] = node.arguments
      return node.callee.type === 'Identifier' && node.callee.name === 'require' && argument !== undefined
        ? { literal: argument, kind: 'import' }
        : null
    }
    default: {
      const literal = urlLiteral(node)
      return literal === null ? null : { literal, kind: 'file' }
    }
  }
}

/** The references of a module's source. */
export function readSource(text: string): Source {
  let program: AnyNode | null = null
  for (const sourceType of ['module', 'script'] as const) {
    try {
      program = parse(text, {
        ecmaVersion: 'latest',
        sourceType,
        allowHashBang: true,
        allowReturnOutsideFunction: true,
        allowAwaitOutsideFunction: true,
      })
      break
    } catch {
      // A CommonJS module may be none of ECMAScript, and TypeScript is neither.
    }
  }
  if (program === null) return { references: [], problems: ['its imports cannot be read: it is not JavaScript'], program }
  const references: Reference[] = []
  const problems: string[] = []
  for (const node of nodesOf(program)) {
    const found = referenceIn(node)
    if (found === null) continue
    const { literal, kind } = found
    if (isString(literal)) references.push({ specifier: literal.value, start: literal.start, end: literal.end, kind })
    else problems.push(`it imports what is only known when it runs: ${text.slice(node.start, node.end).slice(0, 100)}`)
  }
  return { references, problems, program }
}
