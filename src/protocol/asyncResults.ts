// Results of async functions where others give tensors: what is asked of the Promise is told to be asked of what it resolves to.
import { ArgumentError, UnknownNameError } from '../errors/index.ts'
import { isTensorLike } from './tensorLike.ts'

/** Whether `value` is a Promise. Tensors are told apart first: `instanceof` would follow their prototypes as far as the Proxy that explains unknown names, which takes longer than a call. */
export const isPromise = (value: unknown): value is Promise<unknown> => typeof value === 'object' && !isTensorLike(value) && value instanceof Promise

const explained = new WeakSet<object>()

/**
 * Makes a Promise throw UnknownNameError for members of the tensors in `args`, which the async function `what` was called with. Other names are as before: undefined
 * unless Promises have them.
 */
export function explainPromise<T>(promise: Promise<T>, what: string, args: readonly unknown[]): Promise<T> {
  const tensor = args.find(isTensorLike)
  if (tensor === undefined || explained.has(promise)) return promise
  explained.add(promise)
  // Not the tensor itself, which would live as long as the Promise.
  const members: object = Object.getPrototypeOf(tensor)
  const above: object = Object.getPrototypeOf(promise)
  const handler: ProxyHandler<object> = {
    get(_above, name, receiver) {
      if (typeof name === 'symbol' || Reflect.has(above, name) || !(name in members)) return Reflect.get(above, name, receiver)
      throw new UnknownNameError(
        `${what} is async, so its result is a Promise, which has no '${name}': write await before the call, (await …).${name}.`,
      )
    },
  }
  return Object.setPrototypeOf(promise, new Proxy(Object.create(above), handler))
}

/**
 * Throws ArgumentError if a function that was called returned a Promise. Its failure then is no error of its own: what it does after its first await is abandoned.
 * `advice` is the end of the message.
 */
export function checkSynchronous(where: string, name: string, result: unknown, advice = 'give a function without await, and await around it'): void {
  if (!isPromise(result)) return
  result.catch(() => {})
  throw new ArgumentError(`${where}: ${name} is async, and only what it does before its first await would count; ${advice}.`)
}
