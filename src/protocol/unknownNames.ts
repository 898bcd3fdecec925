// Names that do not exist. Whoever knows PyTorch writes `torch.zeros_like` or `x.numpy()`; JavaScript would say `undefined is not a function`, or nothing at all
// when a property is set. An object that is guided throws an error with our name instead.
//
// The guide is a Proxy behind the object's last prototype, so that only names that are found nowhere reach it: names that exist cost nothing.
import { UnknownNameError } from '../errors/index.ts'
import { camelCase, snakeCase } from './names.ts'
import { nearest } from './nearest.ts'

/** What a guided object says about names that it does not have. */
export interface NamesGuide {
  /** How messages write the object: `torch`, or `x` for any tensor. */
  readonly owner: string
  /** The names that exist. Asked when the first one is missing. */
  readonly known: () => readonly string[]
  /** What to write instead of names of PyTorch that are not just spelled differently: by name, in PyTorch's spelling or ours, the end of a sentence. */
  readonly instead: ReadonlyMap<string, string>
  /** What to write instead of setting properties of these names, in the same form. Asked for extensible objects; for others, `instead` counts. */
  readonly insteadOfSetting?: ReadonlyMap<string, string>
  /** Whether users add properties of their own. Then only reading PyTorch's exact names is taken for a mistake. Default false. */
  readonly extensible?: boolean
  /** Reads `object[key]` for a key that is not a name (`0`, `-1`, `1:3`); undefined if there is nothing. */
  readonly at?: (object: unknown, key: string) => unknown
  /** Called for `object[key] = value` with such a key. Throws if that is a mistake. */
  readonly setAt?: (key: string) => void
}

// Promises, JSON, test frameworks, inspectors and bundlers ask any object for these names.
const ASKED_OF_ANYTHING = new Set([
  'then',
  'catch',
  'finally',
  'toJSON',
  'inspect',
  'splice',
  'nodeType',
  'nodeName',
  'tagName',
  'asymmetricMatch',
  'calls',
  'mock',
  'next',
  'default',
  'name',
  'message',
  'stack',
  'cause',
  'key',
  'ref',
  'props',
  'type',
])
const NAME = /^[a-z]\w*$/i

/** Throws UnknownNameError if there is something to write instead of the name. */
function refuse(owner: string, name: string, instead: ReadonlyMap<string, string> | undefined): void {
  const snake = snakeCase(name)
  const other = instead?.get(name) ?? (camelCase(snake) === name ? instead?.get(snake) : undefined)
  if (other !== undefined) throw new UnknownNameError(`${owner}.${name} does not exist here: ${other}.`)
}

/** Throws UnknownNameError if the name is certainly a mistake. `resembling`: also for names that resemble a known one. */
function explain(guide: NamesGuide, name: string, resembling: boolean): void {
  const { owner, instead } = guide
  refuse(owner, name, instead)
  if (ASKED_OF_ANYTHING.has(name)) return
  const known = guide.known()
  const camel = camelCase(name)
  if (camel !== name && known.includes(camel))
    throw new UnknownNameError(`${owner}.${name} is ${owner}.${camel} here: PyTorch's names are written in camelCase.`)
  const near = resembling ? nearest(name, known) : null
  if (near !== null) throw new UnknownNameError(`${owner}.${name} does not exist; did you mean ${owner}.${near}?`)
}

const guided = new WeakSet<object>()

/**
 * Makes `object`, and those of which it is the prototype, throw UnknownNameError for names that are certainly mistakes. Other unknown names stay undefined.
 * A second guide for the same object is ignored.
 */
export function explainUnknownNames<T extends object>(object: T, guide: NamesGuide): T {
  if (guided.has(object)) return object
  guided.add(object)
  const above: object = Object.getPrototypeOf(object) ?? Object.prototype
  const handler: ProxyHandler<object> = {
    get(_above, name, receiver) {
      if (typeof name === 'symbol' || Reflect.has(above, name)) return Reflect.get(above, name, receiver)
      if (!NAME.test(name)) return guide.at?.(receiver, name)
      explain(guide, name, guide.extensible !== true)
      // The prototype above may have a guide of its own.
      return Reflect.get(above, name, receiver)
    },
    set(_above, name, value, receiver) {
      if (typeof name === 'string') {
        if (guide.extensible === true) refuse(guide.owner, name, guide.insteadOfSetting)
        else if (NAME.test(name)) explain(guide, name, false)
        else guide.setAt?.(name)
      }
      return Reflect.set(above, name, value, receiver)
    },
  }
  return Object.setPrototypeOf(object, new Proxy(Object.create(above), handler))
}
