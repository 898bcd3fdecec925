// All places of a file where JavaScript does something with a tensor that no tracer can see. One walk serves all rules.
import { SYMBOLIC, TRACERS } from './vocabulary.js'
import { bare, children, isFunction, propertyName } from './syntax.js'
import { Tensors } from './tensors.js'

/**
 * @typedef {'condition' | 'equality' | 'operator' | 'typeof' | 'key'} Kind
 * @typedef {{ kind: Kind, node: object, text: string, size: boolean, symbolic: boolean }} Finding
 * `size`: it is about a size, which is a plain number unless symbolicTrace runs the function; `symbolic`: it does.
 */

const cache = new WeakMap()

/** The findings of a file. */
export function findings(program) {
  let found = cache.get(program)
  if (found === undefined) {
    found = new Finder(program).found
    cache.set(program, found)
  }
  return found
}

const EQUALITY = new Set(['===', '!==', '==', '!='])
const BINARY = new Set(['<', '<=', '>', '>=', '+', '-', '*', '/', '%', '**', '&', '|', '^', '<<', '>>', '>>>'])

class Finder {
  found = []
  /** Functions that are run on traced values: whether sizes are traced too. */
  #traced = new Map()

  constructor(program) {
    this.#findTraced(program)
    this.#function(program, null, null)
  }

  /** `forward` methods, and functions given to symbolicTrace, compile, … here, directly or by name. */
  #findTraced(program) {
    const declared = new Map()
    const given = []
    const visit = (node) => {
      if (node.type === 'FunctionDeclaration' && node.id) declared.set(node.id.name, node)
      if (node.type === 'VariableDeclarator' && node.init && node.id.type === 'Identifier' && isFunction(bare(node.init)))
        declared.set(node.id.name, bare(node.init))
      if (
        (node.type === 'MethodDefinition' || node.type === 'PropertyDefinition') &&
        propertyName(node) === 'forward' &&
        node.value &&
        isFunction(node.value)
      )
        this.#traced.set(node.value, false)
      if (node.type === 'CallExpression' && node.arguments.length > 0) {
        const callee = bare(node.callee)
        const name = callee.type === 'Identifier' ? callee.name : callee.type === 'MemberExpression' ? propertyName(callee) : null
        if (TRACERS.has(name)) given.push([bare(node.arguments[0]), SYMBOLIC.has(name)])
      }
      for (const child of children(node)) visit(child)
    }
    visit(program)
    for (const [node, symbolic] of given) {
      const fn = isFunction(node) ? node : node.type === 'Identifier' ? declared.get(node.name) : undefined
      if (fn !== undefined) this.#traced.set(fn, symbolic || this.#traced.get(fn) === true)
    }
  }

  #function(fn, outer, outerTraced) {
    const traced = this.#traced.get(fn) ?? outerTraced
    const tensors = new Tensors(fn, outer, traced !== null)
    const visit = (node) => {
      this.#check(node, tensors, traced === true)
      for (const child of children(node)) {
        if (isFunction(child)) this.#function(child, tensors, traced)
        else visit(child)
      }
    }
    for (const child of children(fn)) {
      if (isFunction(child)) this.#function(child, tensors, traced)
      else visit(child)
    }
  }

  #check(node, tensors, symbolic) {
    const report = (kind, at, text, size = false) => this.found.push({ kind, node: at, text, size, symbolic })
    const condition = (test) => {
      if (test === null || test === undefined) return
      if (tensors.has(test)) report('condition', test, 'A tensor is always true, whatever its values')
      else if (tensors.isSize(test)) report('condition', test, 'A size of a traced tensor is always true, also 0', true)
    }
    const key = (value) => {
      if (tensors.has(value)) report('key', value, 'A tensor as a key is its printed text, which different tensors share')
    }
    switch (node.type) {
      case 'IfStatement':
      case 'WhileStatement':
      case 'DoWhileStatement':
      case 'ForStatement':
      case 'ConditionalExpression':
        // `a && b` is looked at by itself; its last operand decides here.
        return condition(node.test && lastOperand(node.test))
      case 'UnaryExpression':
        return this.#unary(node, tensors, condition, report)
      case 'LogicalExpression':
        return node.operator === '??' ? undefined : condition(lastOperand(node.left))
      case 'CallExpression':
        return this.#call(node, tensors, condition, report)
      case 'SwitchStatement':
        return this.#same(node.discriminant, node.discriminant, tensors, report)
      case 'BinaryExpression':
        return this.#binary(node, tensors, report)
      case 'MemberExpression':
      case 'Property':
        return node.computed ? key(node.property ?? node.key) : undefined
      case 'AssignmentExpression':
        if (node.operator !== '=' && !/&&|\|\||\?\?/.test(node.operator) && (tensors.has(node.left) || tensors.has(node.right)))
          report('operator', node, `'${node.operator}' does not work on tensors`)
        return undefined
      case 'UpdateExpression':
        if (tensors.has(node.argument)) report('operator', node, `'${node.operator}' does not work on tensors`)
        return undefined
      default:
        return undefined
    }
  }

  #unary(node, tensors, condition, report) {
    if (node.operator === '!') condition(lastOperand(node.argument))
    else if (node.operator === 'typeof' && tensors.has(node.argument)) report('typeof', node, "typeof of a traced tensor is 'function'")
    else if (/^[-+~]$/.test(node.operator) && tensors.has(node.argument))
      report('operator', node, `unary '${node.operator}' does not work on tensors`)
  }

  #call(node, tensors, condition, report) {
    const callee = bare(node.callee)
    const [first] = node.arguments
    if (first === undefined) return
    if (callee.type === 'Identifier' && callee.name === 'Boolean') condition(first)
    const isArrayTest = callee.type === 'MemberExpression' && propertyName(callee) === 'isArray' && callee.object.name === 'Array'
    if (isArrayTest && tensors.has(first)) report('typeof', node, 'Array.isArray of a traced tensor is false')
  }

  #same(node, value, tensors, report) {
    if (tensors.has(value)) report('equality', node, 'Tensors are compared by identity here')
    else if (tensors.isSize(value)) report('equality', node, 'A size of a traced tensor equals no number', true)
  }

  #binary(node, tensors, report) {
    const { operator, left, right } = node
    if (EQUALITY.has(operator)) {
      // `mask === null` asks whether there is one, and is answered by concreteArgs.
      if (isNothing(left) || isNothing(right)) return
      this.#same(node, tensors.has(right) || tensors.isSize(right) ? right : left, tensors, report)
    } else if (operator === 'in' && tensors.has(left)) report('key', left, 'A tensor as a key is its printed text, which different tensors share')
    else if (operator === 'instanceof' && tensors.has(left)) report('typeof', node, 'instanceof of a traced tensor is false')
    else if (BINARY.has(operator) && (tensors.has(left) || tensors.has(right))) report('operator', node, `'${operator}' does not work on tensors`)
  }
}

/** Of `a && b`, b: a is an operand of its own. */
function lastOperand(test) {
  let node = bare(test)
  while (node.type === 'LogicalExpression') node = bare(node.right)
  return node
}

const isNothing = (node) =>
  (node.type === 'Literal' && node.value === null && !node.regex) || (node.type === 'Identifier' && node.name === 'undefined')
