// Draws one dashboard: `?board=NAME&from=MS&to=MS&theme=dark`.
import { createTheme, type DataSourceInstanceSettings } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { config } from '@grafana/runtime';
import { EmbeddedScene, loadResources, sceneUtils } from '@grafana/scenes';
import { GlobalStyles, PortalContainer, ThemeContext } from '@grafana/ui';
import { createRoot } from 'react-dom/client';

import { heatmap } from './panels/heatmap';
import { stat } from './panels/stat';
import { table } from './panels/table';
import { text } from './panels/text';
import { timeseries } from './panels/timeseries';
import { fillRegistries } from './registries';
import { sceneOf } from './scene';
import { offerServices } from './services';
import { standings, type Standing } from './standing';

declare global {
  interface Window {
    standings: () => Standing[];
  }
}

const asked = new URLSearchParams(location.search);
const theme = createTheme({ colors: { mode: asked.get('theme') === 'light' ? 'light' : 'dark' } });

function Drawn({ scene }: { scene: EmbeddedScene }) {
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PortalContainer />
      <scene.Component model={scene} />
    </ThemeContext.Provider>
  );
}

async function main(): Promise<void> {
  config.theme2 = theme;
  await initPluginTranslations('grafana-scenes', [loadResources]);
  fillRegistries();
  offerServices((await (await fetch('api/datasource')).json()) as DataSourceInstanceSettings);
  for (const [pluginId, plugin] of Object.entries({ heatmap, stat, table, text, timeseries })) {
    sceneUtils.registerRuntimePanelPlugin({ pluginId, plugin });
  }
  const board = await (await fetch(`api/dashboards/${asked.get('board')}`)).json();
  const at = (name: string) => new Date(Number(asked.get(name))).toISOString();
  const scene = sceneOf(board, at('from'), at('to'));
  window.__grafanaSceneContext = scene;
  window.standings = () => standings(scene);
  createRoot(document.getElementById('root') as HTMLElement).render(<Drawn scene={scene} />);
}

void main();
