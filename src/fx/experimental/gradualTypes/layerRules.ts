// Rules for what nodes call: functions, methods and layers, by the names that graphs print. The type checker and the constraint generator have one table of each kind.
import { ArgumentError, UnsupportedError } from '../../../errors/index.ts'
import { Module, isLibraryLayer } from '../../../module/index.ts'
import { checkArgument, checkCallable, isCallable, snakeCase, targetInfo } from '../../../protocol/index.ts'
import type { TargetFunction } from '../../../protocol/index.ts'
import { targetText } from '../../graph/node.ts'
import type { Node } from '../../graph/node.ts'
import { originOf } from '../../graph/origin.ts'

/** What rules are found by: a function, a class of modules, or the name that graphs print (`torch.add`, `torch.nn.Conv2d`). */
export type RuleTarget = TargetFunction | object | string

/** The module that a node calls. */
export function moduleOf(root: Module, node: Node): Module {
  const module = node.op === 'call_module' ? moduleAt(root, node.target) : null
  if (module === null) throw new ArgumentError(`node '${node.name}' must call a module of the model; there is none at '${String(node.target)}'.`)
  return module
}

function moduleAt(root: Module, path: string): Module | null {
  let at: unknown = root
  for (const name of path.split('.')) at = at instanceof Module ? Reflect.get(at, name) : null
  return at instanceof Module ? at : null
}

/** Rules, by what they are for. */
export class RuleTable<Rule> {
  readonly #what: string
  readonly #rules: Map<unknown, Rule>

  constructor(what: string, rules: Readonly<Record<string, Rule>>) {
    this.#what = what
    this.#rules = new Map(Object.entries(rules))
  }

  /** Adds a rule. @throws ArgumentError if there is one already. */
  add(target: RuleTarget, rule: Rule): void {
    checkArgument(typeof target === 'string' || isCallable(target), this.#what, 'target', 'a function, a class or a name', target)
    checkCallable(this.#what, 'rule', rule)
    const known = typeof target === 'string' ? this.#rules.get(target) : (this.#rules.get(target) ?? this.#byName(target))
    if (known !== undefined) throw new ArgumentError(`${this.#what} already registered for ${nameOf(target)}!`)
    this.#rules.set(target, rule)
  }

  #byName(target: unknown): Rule | undefined {
    const name = targetInfo(target)?.name
    return name === undefined ? undefined : this.#rules.get(name)
  }

  /** The rule for a function; undefined if there is none. */
  forFunction(target: TargetFunction): Rule | undefined {
    return this.#rules.get(target) ?? this.#byName(target)
  }

  /** The rule for a method, given as `.view`, or for the function of its name. */
  forMethod(name: string): Rule | undefined {
    const snake = snakeCase(name)
    return this.#rules.get(`.${snake}`) ?? this.#rules.get(`.${name}`) ?? this.#rules.get(`torch.${name}`)
  }

  /** The rule for a module: its class's, or that of a layer of the library. Subclasses have none, because their forward may do something else. */
  forModule(module: Module): Rule | undefined {
    const { constructor } = module
    return this.#rules.get(constructor) ?? (isLibraryLayer(module) ? this.#rules.get(`torch.nn.${constructor.name}`) : undefined)
  }

  /** The rule for what a node calls; undefined if there is none. */
  find(root: Module, node: Node): Rule | undefined {
    if (node.op === 'call_function') return this.forFunction(node.target)
    if (node.op === 'call_method') return this.forMethod(node.target)
    return node.op === 'call_module' ? this.forModule(moduleOf(root, node)) : undefined
  }

  /** The rule for what a node calls. @throws UnsupportedError if there is none. */
  get(root: Module, node: Node): Rule {
    const rule = this.find(root, node)
    if (rule !== undefined) return rule
    throw new UnsupportedError(`No ${this.#what.toLowerCase()} registered for ${described(root, node)}!${placeOf(node)}`)
  }
}

const nameOf = (target: RuleTarget): string =>
  typeof target === 'string' ? target : (targetInfo(target)?.name ?? ('name' in target ? String(target.name) : 'an object'))

function described(root: Module, node: Node): string {
  if (node.op === 'call_module') return `class ${moduleOf(root, node).constructor.name}`
  return `target ${node.op === 'call_method' ? snakeCase(node.target) : targetText(node.target)}`
}

/** `\n  at forward (model.ts:12:5)`: where the user wrote what a node does; '' if unknown. */
export function placeOf(node: Node): string {
  const frame = originOf(node)
  return frame === null ? '' : `\n  at ${frame.fn} (${frame.file}:${frame.line}:${frame.column})`
}
