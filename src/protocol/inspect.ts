// How Node's console.log, its REPL and chai's messages show an object: as one text instead of all its fields.

/** Makes Node show the objects of a class as this text. In browsers they stay expandable. */
export function inspectAs<T extends object>(prototype: T, text: (value: T) => string): void {
  Object.defineProperty(prototype, Symbol.for('nodejs.util.inspect.custom'), {
    value(this: T): string {
      return text(this)
    },
    configurable: true,
    writable: true,
  })
}
