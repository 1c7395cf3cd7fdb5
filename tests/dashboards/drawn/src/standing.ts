// How each panel stands, for `draw.py` to judge: whether it is done, has a value, and what was refused.
import { LoadingState } from '@grafana/data';
import {
  sceneGraph,
  VizPanel,
  type EmbeddedScene,
  type SceneObject,
  MultiValueVariable,
  SceneGridRow,
} from '@grafana/scenes';

import { hasValue } from './values';

export interface Standing {
  title: string;
  isDone: boolean;
  hasData: boolean;
  errors: string[];
}

export function standings(scene: EmbeddedScene): Standing[] {
  const found = sceneGraph.findAllObjects(scene, (one) => one instanceof VizPanel || one instanceof MultiValueVariable);
  return found
    .filter((one) => !isHidden(one))
    .map((one) => (one instanceof VizPanel ? ofPanel(one) : ofVariable(one as MultiValueVariable)));
}

/** In a closed section nothing is asked. */
function isHidden(one: SceneObject): boolean {
  const row = one.parent?.parent;
  return row instanceof SceneGridRow && Boolean(row.state.isCollapsed);
}

function ofPanel(panel: VizPanel): Standing {
  const { title, pluginId, _pluginLoadError } = panel.state;
  if (pluginId === 'text') {
    return { title, isDone: true, hasData: true, errors: [] };
  }
  const data = sceneGraph.getData(panel).state.data;
  const errors = [
    ...(data?.errors ?? []).map((error) => error.message ?? 'an error'),
    ...(_pluginLoadError ? [_pluginLoadError] : []),
  ];
  const isDone = data?.state === LoadingState.Done || data?.state === LoadingState.Error;
  return { title, isDone, hasData: hasValue(data?.series ?? []), errors };
}

function ofVariable(variable: MultiValueVariable): Standing {
  const { name, loading, error, options } = variable.state;
  return { title: `$${name}`, isDone: !loading, hasData: options.length > 0, errors: error ? [String(error)] : [] };
}
