// Adds notes to a module in JavaScript that say which function is entered and left. Functions have the names of the model (`Class.member`); a local function counts for the declaration
// around it. Async functions and generators are left where they wait, and entered again where they go on, so that other work in between is not theirs.
import { parse } from 'acorn'
import type { AnyNode, Function, Program } from 'acorn'

/** The global object that has the notes. */
export const RECORDER = '__tensorfxFlow'

/** Adds the notes. `file` is the path that ids begin with. Returns null for code that cannot be parsed. */
export function instrument(code: string, file: string, sourceType: 'module' | 'script'): string | null {
  let program: Program
  try {
    program = parse(code, {
      ecmaVersion: 'latest',
      sourceType,
      preserveParens: true,
      allowHashBang: true,
      allowReturnOutsideFunction: true,
      allowAwaitOutsideFunction: true,
    })
  } catch {
    return null
  }
  const notes = new Notes(file)
  notes.visit(program, { name: '', unit: null, isInFunction: false, waits: false })
  let [out, last] = ['', 0]
  const inserts = notes.inserts.map((insert, order) => ({ ...insert, order })).toSorted((a, b) => a.at - b.at || a.rank - b.rank || a.order - b.order)
  for (const { at, text } of inserts) {
    out += code.slice(last, at) + text
    last = at
  }
  return out + code.slice(last)
}

/** Where a node is. */
interface Place {
  /** The name of the class or object around it, with a dot. */
  readonly name: string
  /** The declaration that it belongs to; null at the top of the module. */
  readonly unit: string | null
  readonly isInFunction: boolean
  /** Whether the function around it is async or a generator. */
  readonly waits: boolean
}

interface Insert {
  readonly at: number
  readonly text: string
  /** Of inserts at one place, the order: what closes comes first. */
  readonly rank: number
}

const isNode = (value: unknown): value is AnyNode => typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

/** The name of a member; null for one that is computed. */
function keyOf(node: AnyNode): string | null {
  if (!('key' in node) || !isNode(node.key)) return null
  const { key } = node
  if ('computed' in node && node.computed === true) {
    if (key.type === 'MemberExpression' && key.object.type === 'Identifier' && key.object.name === 'Symbol' && key.property.type === 'Identifier')
      return `[Symbol.${key.property.name}]`
    return null
  }
  if (key.type === 'Identifier') return key.name
  if (key.type === 'PrivateIdentifier') return `#${key.name}`
  return key.type === 'Literal' ? String(key.value) : null
}

class Notes {
  readonly inserts: Insert[] = []
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  #insert(at: number, text: string, rank = 0): void {
    this.inserts.push({ at, text, rank })
  }

  visit(node: AnyNode, place: Place): void {
    switch (node.type) {
      case 'FunctionDeclaration':
      case 'FunctionExpression':
      case 'ArrowFunctionExpression':
        return this.#function(
          node,
          node.type === 'FunctionDeclaration' && place.unit === null
            ? { ...place, unit: place.name + (node.id === null ? 'default' : node.id.name) }
            : place,
        )
      case 'ClassDeclaration':
      case 'ClassExpression':
        return this.#children(node, place.unit === null ? { ...place, name: `${place.name}${node.id?.name ?? 'default'}.` } : place)
      case 'VariableDeclarator':
        return this.#named(node.init ?? null, node.id.type === 'Identifier' ? node.id.name : null, place)
      case 'ExportDefaultDeclaration':
        return this.#named(
          node.declaration,
          null,
          place.unit === null && !node.declaration.type.endsWith('Declaration') ? { ...place, unit: 'default' } : place,
        )
      case 'AssignmentExpression':
        return this.#assignment(node, place)
      case 'MethodDefinition':
      case 'PropertyDefinition':
      case 'Property':
        return this.#member(node, place)
      case 'AwaitExpression':
        if (place.waits) this.#wait(node, node.argument, 'leave')
        return this.#children(node, place)
      case 'YieldExpression':
        if (place.waits && node.argument !== null && node.argument !== undefined)
          this.#wait(node, node.argument, node.delegate ? 'delegate' : 'leave')
        else if (place.waits) {
          this.#insert(node.start, `${RECORDER}.back($flow, (${RECORDER}.leave($flow), `)
          this.#insert(node.end, '))', -1)
        }
        return this.#children(node, place)
      case 'CatchClause':
        if (place.waits) this.#insert(node.body.start + 1, `${RECORDER}.back($flow);`)
        return this.#children(node, place)
      case 'TryStatement':
        if (place.waits && node.finalizer !== null && node.finalizer !== undefined) this.#insert(node.finalizer.start + 1, `${RECORDER}.back($flow);`)
        return this.#children(node, place)
      case 'ForOfStatement':
        if (place.waits && node.await && node.body.type === 'BlockStatement') {
          this.#insert(node.right.start, `${RECORDER}.leave($flow, (`)
          this.#insert(node.right.end, '))', -1)
          this.#insert(node.body.start + 1, `${RECORDER}.back($flow);try{`)
          this.#insert(node.body.end - 1, `}finally{${RECORDER}.leave($flow)}`)
          this.#insert(node.end, `;${RECORDER}.back($flow);`, -1)
        }
        return this.#children(node, place)
      default:
        return this.#children(node, place)
    }
  }

  #children(node: AnyNode, place: Place): void {
    for (const child of Object.values(node))
      if (Array.isArray(child)) {
        for (const item of child) if (isNode(item)) this.visit(item, place)
      } else if (isNode(child)) this.visit(child, place)
  }

  /** A value with a name: at the top of the module it is a declaration. */
  #named(value: AnyNode | null, name: string | null, place: Place): void {
    if (value === null) return
    if (place.unit !== null || name === null) return this.visit(value, place)
    if (value.type === 'ClassExpression') return this.#children(value, { ...place, name: `${place.name}${name}.` })
    if (value.type === 'ObjectExpression') return this.#children(value, { ...place, name: `${place.name}${name}.`, unit: null })
    this.visit(value, { ...place, unit: place.name + name })
  }

  #member(node: AnyNode, place: Place): void {
    const key = keyOf(node)
    const value = 'value' in node && isNode(node.value) ? node.value : null
    const isFunction = value?.type === 'FunctionExpression' || value?.type === 'ArrowFunctionExpression'
    if (place.unit !== null || place.name === '' || key === null || !isFunction)
      return this.#children(node, place.unit === null && place.name !== '' && !isFunction ? { ...place, unit: place.name.slice(0, -1) } : place)
    this.visit(value, { ...place, unit: place.name + key })
  }

  /** `exports.f = function`, `A.prototype.f = function`, `module.exports = { f }`. */
  #assignment(node: AnyNode & { type: 'AssignmentExpression' }, place: Place): void {
    const path = place.unit === null && place.name === '' && node.left.type === 'MemberExpression' ? memberPath(node.left) : null
    if (path === null) return this.#children(node, place)
    if (path === 'module.exports') {
      if (node.right.type === 'ObjectExpression') {
        for (const property of node.right.properties) {
          const key = keyOf(property)
          if (property.type === 'Property' && key !== null) this.#named(property.value, key, place)
        }
        return
      }
      return this.#named(node.right, 'default', place)
    }
    this.#named(node.right, path.replace(/^(?:module\.)?exports\./, '').replace('.prototype.', '.'), place)
  }

  /** `await e` is left before it waits, and entered again with its value. */
  #wait(node: AnyNode, argument: AnyNode, how: 'leave' | 'delegate'): void {
    this.#insert(node.start, `${RECORDER}.back($flow, `)
    this.#insert(argument.start, `${RECORDER}.${how}($flow, (`)
    this.#insert(argument.end, '))', -2)
    this.#insert(node.end, ')', -1)
  }

  #function(node: Function & AnyNode, place: Place): void {
    const unit = place.unit ?? ''
    const waits = node.async || node.generator === true
    // Of a declaration that is not a function, such as an object passed to a call, the functions in it can be entered.
    const call = `const $flow=${RECORDER}.${place.isInFunction ? 'within' : 'enter'}(${JSON.stringify(`${this.#file}#${unit}`)});try{`
    const inside: Place = { name: '', unit, isInFunction: true, waits }
    for (const parameter of node.params) this.visit(parameter, { ...inside, waits: false })
    const { body } = node
    if (body.type === 'BlockStatement') {
      const first = body.body.find((statement) => !('directive' in statement && statement.directive !== undefined))
      const directives = body.body.filter((statement) => 'directive' in statement && statement.directive !== undefined)
      const at = first === undefined && directives.length === 0 ? body.start + 1 : (directives.at(-1)?.end ?? body.start + 1)
      this.#insert(at, `${directives.length > 0 ? ';' : ''}${call}`)
      this.#insert(body.end - 1, `}finally{${RECORDER}.exit($flow)}`, 1)
    } else {
      this.#insert(body.start, `{${call}return `)
      this.#insert(body.end, `}finally{${RECORDER}.exit($flow)}}`, -1)
    }
    this.visit(body, inside)
  }
}

/** The text of `a.b.c`; null for others. */
function memberPath(node: AnyNode): string | null {
  if (node.type === 'Identifier') return node.name
  if (node.type !== 'MemberExpression' || node.computed || node.property.type !== 'Identifier') return null
  const object = memberPath(node.object)
  return object === null ? null : `${object}.${node.property.name}`
}
