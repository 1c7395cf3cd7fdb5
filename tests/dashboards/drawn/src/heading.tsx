// What Grafana's application, not its libraries, writes over a dashboard: its title and its links.
import type { DashboardLink } from '@grafana/schema';
import { SceneObjectBase, type SceneComponentProps, type SceneObjectState } from '@grafana/scenes';
import { Dropdown, Menu, ToolbarButton, useTheme2 } from '@grafana/ui';

export class Title extends SceneObjectBase<SceneObjectState & { title: string }> {
  static Component = ({ model }: SceneComponentProps<Title>) => {
    const theme = useTheme2();
    return <h1 style={{ ...theme.typography.h3, margin: 0, width: '100%' }}>{model.useState().title}</h1>;
  };
}

export class Links extends SceneObjectBase<SceneObjectState & { links: DashboardLink[] }> {
  static Component = ({ model }: SceneComponentProps<Links>) =>
    model.useState().links.map((link) => (
      <Dropdown key={link.title} overlay={<Menu>{null}</Menu>}>
        <ToolbarButton icon="bars" variant="canvas" isOpen={false}>
          {link.title}
        </ToolbarButton>
      </Dropdown>
    ));
}
