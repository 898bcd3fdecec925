// Members of the namespace `torch` that an entry adds when it is imported, so that programs without it have nothing of them.

/** What entries have added; the namespace finds it here. */
export const torchModules: object = {}

/** An object with members of its own, and those that entries add later. */
export function withModules<T extends object, Later>(object: T): T & Later {
  return Object.setPrototypeOf(object, torchModules)
}
