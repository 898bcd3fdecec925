// The composition root of tensorfx/core: tensors with the operators of networks of convolutions and of transformers. What is called and not loaded names its import.
import { namesOfGroups } from '../ops/generated/groupNames.ts'
import { operators } from '../ops/generated/groups/core.ts'
import { camelCase, explainMissingTargets } from '../protocol/index.ts'
import { installOperators } from './operators.ts'
import { addImportedNames } from './tensorNames.ts'

let isInstalled = false

/** The group of an operator by the end of its name; undefined if there is none, or core. */
const groupOf = (name: string): string | undefined =>
  Object.keys(namesOfGroups).find((group) => namesOfGroups[group]?.split(' ').includes(name.replace(/_$/, '')))

const importOf = (group: string): string => `it is among the operators of '${group}': write import 'tensorfx/ops/${group}'`

/** Makes tensors and the operators of the group core work. */
export function installCore(): void {
  if (isInstalled) return
  isInstalled = true
  installOperators(operators)
  explainMissingTargets((name) => {
    const group = groupOf(camelCase(name.slice(name.lastIndexOf('.') + 1)))
    return group === undefined ? "write import 'tensorfx', which has all operators, or import the module that registers it first" : importOf(group)
  })
  addImportedNames(
    Object.entries(namesOfGroups).flatMap(([group, names]) =>
      names.split(' ').flatMap((name) => [name, `${name}_`].map((form): [string, string] => [form, importOf(group)])),
    ),
  )
  addImportedNames([['backward', "gradients are not in tensorfx/core: write import 'tensorfx'"]])
}
