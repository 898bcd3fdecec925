# Records the public names of PyTorch's namespaces, for test/mistakes/absentNames.test.ts: python3 scripts/names/record.py > test/goldens/names/names.json
# Left out: Python's own modules and types, TorchScript's classes in C++, and kernels of single libraries, and names that are not documented.
import json
import types
import typing

import torch

LIBRARIES = ('cudnn_', 'miopen_', 'mkldnn_', 'fbgemm_', 'batch_norm_', 'native_', 'autocast_', 'PRIVATE_', 'USE_', 'TYPE_')

INTERNAL = set(
    'DisableTorchFunction FatalError candidate classes classproperty cpp get_file_path init_num_threads is_distributed merge_type_from_type_comment obj '
    'parse_type_comment prepare_multiprocessing_environment read_vitals set_vital vitals_enabled torch_version types unify_type_list norm_except_dim '
    'embedding_renorm_ is_neg common_types factory_kwargs NestedIOFunction anomaly_mode handle_torch_function has_torch_function has_torch_function_unary '
    'has_torch_function_variadic is_tensor_like kineto_available profiler_legacy profiler_util variable assert_int_or_pair boolean_dispatch conv_tbc'.split()
)


def is_own(name, value):
    if name.startswith('_') or name.startswith(LIBRARIES) or name.endswith('_copy') or name in INTERNAL:
        return False
    if value is torch.Tensor and namespace is not torch:
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith('torch.') and namespace is not torch.nn.functional
    if type(value).__name__ == 'pybind11_type' or getattr(value, '__module__', None) in ('typing', 'builtins', 'collections.abc'):
        return isinstance(value, types.BuiltinFunctionType)
    return callable(value) or isinstance(value, (torch.dtype, torch.layout, torch.memory_format, torch.qscheme))


names = {}
for path in ['torch', 'torch.nn', 'torch.nn.utils', 'torch.nn.init', 'torch.optim', 'torch.linalg', 'torch.autograd', 'torch.nn.functional']:
    namespace = torch
    for part in path.split('.')[1:]:
        namespace = getattr(namespace, part)
    names[path] = sorted(name for name in dir(namespace) if is_own(name, getattr(namespace, name, None)))
print(json.dumps({'version': torch.__version__, 'names': names}, indent=1))
