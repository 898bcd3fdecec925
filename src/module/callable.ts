// Objects that can be called. A module is a function under the prototype of its class, so that `model(x)` works and it has no members but those of its class.

/** The members that a callable object needs. */
interface Called {
  (...args: readonly unknown[]): unknown
  call(...args: readonly unknown[]): unknown
}

/** A function under this prototype, which has a method `call`. Calling the function calls that method. */
export function makeCallable(prototype: object): Called {
  const self: Called = Object.setPrototypeOf((...args: readonly unknown[]) => self.call(...args), prototype)
  // A function's own name and length would hide accessors of the class, and could not be assigned.
  Reflect.deleteProperty(self, 'name')
  Reflect.deleteProperty(self, 'length')
  return self
}

/** The base class of objects that can be called. The constructor returns the function, on which the subclasses' fields are then defined. */
export class CallableObject {
  constructor() {
    return makeCallable(new.target.prototype)
  }
}
