// How Node's console.log, its REPL and chai's messages show an object: as one text instead of all its fields.

/** The method by which Node's console formats a value. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom')

/** Makes Node show the objects of a class as this text. In browsers they stay expandable. */
export function inspectAs<T extends object>(prototype: T, text: (value: T) => string): void {
  Object.defineProperty(prototype, INSPECT, {
    value(this: T): string {
      return text(this)
    },
    configurable: true,
    writable: true,
  })
}
