// Names: PyTorch's spelling and JavaScript's (`log_softmax` and `logSoftmax`), dotted paths, and names of functions.

/** `log_softmax` -> `logSoftmax`. Underscores at the ends stay: `add_`, `_assert`. */
export const camelCase = (name: string): string => name.replace(/([a-z0-9])_+([a-z0-9])/g, (_, a: string, b: string) => a + b.toUpperCase())

/** `runningMean` -> `running_mean`, `weightIhL0Reverse` -> `weight_ih_l0_reverse`: PyTorch's name of a parameter. */
export const attributeName = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()

/** `MaxPool2d` -> `max_pool2d`, `ReLU` -> `re_lu`. PyTorch's _snake_case. */
export function snakeCase(name: string): string {
  return /[A-Z]/.test(name) ? name.replace(/([a-z])(?=[A-Z])/g, '$1_').toLowerCase() : name
}

/** The path of something in something else: `childPath('layers.0', 'weight')` is `layers.0.weight`. The path of the root is empty. */
export const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

/** Gives a function another `name`, and returns it. */
export const withName = <F extends object>(fn: F, name: string): F => Object.defineProperty(fn, 'name', { value: name })
