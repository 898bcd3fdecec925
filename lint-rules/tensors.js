// Which expressions of a function are tensors, as far as its source tells. There are no types: a value is a tensor when something is done with it that
// is only done with tensors, or when it comes out of such an operation. What is not known is no tensor.
import { COMMON, DISTINCT, DISTINCT_LISTS, LISTS, NAMESPACES, PLAIN_FUNCTIONS, PLAIN_OBJECTS, SHARED, SIZES } from './vocabulary.js'
import { bare, boundNames, children, isFunction, propertyName } from './syntax.js'

/** The tensors that are known inside one function. */
export class Tensors {
  #names
  /** Names of arrays of tensors. */
  #lists = new Set()
  #traced
  /** The function works on tensors: what its parameters are asked may be meant for tensors. */
  #worksOnTensors

  /** `outer` are those of the function around it; `traced`: the function runs on traced values. */
  constructor(fn, outer, traced) {
    this.#traced = traced
    this.#worksOnTensors = traced || outer?.#worksOnTensors === true || callsDistinct(fn.body ?? fn)
    this.#names = new Set(outer === null ? [] : outer.#names)
    if (outer !== null) for (const name of outer.#lists) this.#lists.add(name)
    for (const param of fn.params ?? []) {
      for (const name of boundNames(param)) {
        this.#names.delete(name)
        this.#lists.delete(name)
      }
    }
    const candidates = new Set((fn.params ?? []).filter((p) => !hasPlainDefault(p)).flatMap(boundNames))
    // What one statement tells helps with the ones before it (loops) and behind it.
    for (let size = -1; size !== this.#names.size + this.#lists.size;) {
      size = this.#names.size + this.#lists.size
      this.#learn(fn.body ?? fn, candidates)
    }
  }

  #learn(node, candidates) {
    if (node.type === 'VariableDeclarator' && node.init) this.#bind(node.id, bare(node.init))
    else if (node.type === 'AssignmentExpression' && node.operator === '=') this.#bind(node.left, bare(node.right))
    else if (node.type === 'CallExpression') this.#learnFromCall(node, candidates)
    else if (node.type === 'ForOfStatement' && this.#hasTensors(bare(node.right)))
      for (const name of boundNames(node.left.declarations?.[0]?.id ?? node.left)) this.#names.add(name)
    for (const child of children(node)) {
      if (isFunction(child)) this.#learnInside(child, candidates)
      else this.#learn(child, candidates)
    }
  }

  /** Functions inside have variables of their own, but what they do with the parameters of this one counts. */
  #learnInside(fn, candidates) {
    const own = new Set(fn.params.flatMap(boundNames))
    const visible = new Set([...candidates].filter((name) => !own.has(name)))
    const visit = (node) => {
      if (node.type === 'CallExpression') this.#learnFromCall(node, visible)
      for (const child of children(node)) {
        if (isFunction(child)) this.#learnInside(child, visible)
        else visit(child)
      }
    }
    if (visible.size > 0) visit(fn.body)
  }

  #bind(pattern, value) {
    if (pattern.type === 'Identifier') {
      if (this.has(value)) this.#names.add(pattern.name)
      else if (this.#isList(value)) this.#lists.add(pattern.name)
    } else if (pattern.type === 'ArrayPattern' && this.#hasTensors(value)) for (const name of boundNames(pattern)) this.#names.add(name)
  }

  /** Parameters that are treated as tensors are tensors. */
  #learnFromCall(node, candidates) {
    const callee = bare(node.callee)
    if (callee.type !== 'MemberExpression') return
    const method = propertyName(callee)
    const self = bare(callee.object)
    if (self.type === 'Identifier' && candidates.has(self.name) && this.#tellsTensor(method)) this.#names.add(self.name)
    if (!isNamespace(self) && !this.#isModuleCall(callee, method)) return
    const first = node.arguments[0] && bare(node.arguments[0])
    if (first?.type === 'Identifier' && candidates.has(first.name) && !PLAIN_FUNCTIONS.has(method)) this.#names.add(first.name)
  }

  #tellsTensor(method) {
    return DISTINCT.has(method) || DISTINCT_LISTS.has(method) || (this.#worksOnTensors && SHARED.has(method))
  }

  #isModuleCall(callee, method) {
    const module = bare(callee.object)
    return this.#traced && method === 'call' && module.type === 'MemberExpression' && bare(module.object).type === 'ThisExpression'
  }

  #isList(node) {
    if (node.type === 'Identifier') return this.#lists.has(node.name)
    if (node.type !== 'CallExpression') return false
    const callee = bare(node.callee)
    return callee.type === 'MemberExpression' && LISTS.has(propertyName(callee)) && (this.has(callee.object) || isNamespace(bare(callee.object)))
  }

  /** Whether the elements of an expression are tensors: those of a list, or the rows of a tensor. */
  #hasTensors(node) {
    return this.#isList(node) || this.has(node)
  }

  /** Whether an expression is a tensor. */
  has(expression) {
    const node = bare(expression)
    switch (node.type) {
      case 'Identifier':
        return this.#names.has(node.name)
      case 'CallExpression':
        return this.#isTensorCall(node)
      case 'MemberExpression':
        return (propertyName(node) === 'T' && this.has(node.object)) || (node.computed && this.#hasTensors(bare(node.object)))
      case 'ConditionalExpression':
        return this.has(node.consequent) || this.has(node.alternate)
      case 'AssignmentExpression':
        return node.operator === '=' && this.has(node.right)
      default:
        return false
    }
  }

  #isTensorCall(node) {
    const callee = bare(node.callee)
    if (callee.type !== 'MemberExpression') return false
    const method = propertyName(callee)
    if (method === null) return false
    const self = bare(callee.object)
    if (self.type === 'Identifier' && PLAIN_OBJECTS.has(self.name)) return false
    if (isNamespace(self)) return !PLAIN_FUNCTIONS.has(method) && !LISTS.has(method) && /^[a-z]/.test(method)
    if (LISTS.has(method) || PLAIN_FUNCTIONS.has(method)) return false
    if (this.has(self)) return DISTINCT.has(method) || SHARED.has(method) || COMMON.has(method) || /[a-z0-9]_$/.test(method)
    return DISTINCT.has(method) || this.#isModuleCall(callee, method)
  }

  /** Whether an expression is a size or dtype of a tensor. */
  isSize(expression) {
    const node = bare(expression)
    if (node.type === 'CallExpression') {
      const callee = bare(node.callee)
      return callee.type === 'MemberExpression' && SIZES.has(propertyName(callee)) && this.has(callee.object)
    }
    if (node.type !== 'MemberExpression') return false
    if (SIZES.has(propertyName(node)) && this.has(node.object)) return true
    return this.isSize(node.object)
  }
}

/** `x = 2`: a parameter of numbers, strings and booleans. */
function hasPlainDefault(param) {
  if (param.type !== 'AssignmentPattern') return false
  const value = param.right
  return !(value.type === 'Literal' && value.value === null) && !(value.type === 'Identifier' && value.name === 'undefined')
}

/** Whether a method that only tensors have is called anywhere below, or a function of torch. */
function callsDistinct(node) {
  if (node.type === 'CallExpression') {
    const callee = bare(node.callee)
    if (callee.type === 'MemberExpression' && (DISTINCT.has(propertyName(callee)) || isNamespace(bare(callee.object)))) return true
  }
  for (const child of children(node)) if (!isFunction(child) && callsDistinct(child)) return true
  return false
}

/** `torch`, `F`, `torch.nn.functional`, `nn.functional`. */
function isNamespace(node) {
  if (node.type === 'Identifier') return NAMESPACES.has(node.name)
  return node.type === 'MemberExpression' && propertyName(node) === 'functional'
}
