// How Node's console.log, its REPL and chai's messages show an object: as text, instead of all its fields.

/** Objects of a class are shown as this text. Elsewhere (browsers) objects stay expandable. */
export function inspectAs<T extends object>(prototype: T, text: (value: T) => string): void {
  Object.defineProperty(prototype, Symbol.for('nodejs.util.inspect.custom'), {
    value(this: T): string {
      return text(this)
    },
    configurable: true,
    writable: true,
  })
}
